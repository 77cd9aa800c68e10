//! What an image requires of driver and GPU (`NVIDIA_REQUIRE_*`), as NVIDIA's tools read it.
//!
//! Requirements are variables of the container: every one whose name begins with `NVIDIA_REQUIRE_`, but for those of
//! Jetson (`NVIDIA_REQUIRE_JETPACK`, `NVIDIA_REQUIRE_JETPACK_HOST_MOUNTS`), which select mounts. All must hold. An
//! image of the time before them has a `CUDA_VERSION` and no `NVIDIA_REQUIRE_CUDA`, and then requires
//! `cuda>=MAJOR.MINOR` of that (NVIDIA Container Toolkit, `internal/config/image/cuda_image.go`, d34b3046,
//! 2026-08-21).
//!
//! Only NVIDIA's legacy hook enforces them, through libnvidia-container, whose `src/cli/dsl.c` (5823754b) is the
//! measure here. The toolkit's second evaluator, in Go for Jetson's CSV mode, is laxer with names (it skips those
//! that it does not know) and stricter with versions; what only it would take differently is read as the first one
//! does. With CDI nobody looks at them.

mod declared;
mod disable;
mod evaluate;
mod explain;
mod expression;
#[cfg(test)]
mod vectors;

pub use declared::{Requirement, declared};
pub use disable::{DISABLE, are_declared, go_bool, is_disabled, is_near};
pub use evaluate::{Evaluation, Subject, evaluate, evaluate_all};
pub use explain::{Change, Explanation, SmallestDriver, explain, smallest_driver};
pub use expression::{Alternative, Expression, Operator, Property, Term, TooLarge, parse};
