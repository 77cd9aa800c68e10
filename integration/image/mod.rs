//! What the image's CUDA, frameworks and libraries for forward compatibility come to on a machine's driver and GPU,
//! through the built programs.

mod cases;
mod command;
mod engines;
mod hostile;
mod hostile_images;
mod newer;
mod requirements;
mod sources;
mod world;
