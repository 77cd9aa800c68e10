//! Tests through the built programs, and through real runtimes where these are there.
//!
//! `GPU_PREFLIGHT_BIN=DIR` names a directory that `packaging/build.sh` has filled; without it the programs
//! that cargo built for the tests are used, and what only holds for the released ones is skipped. What is
//! skipped says so and why; `GPU_PREFLIGHT_TEST_SKIPS=forbidden` makes it a failure, as `integration/test.sh` does.
//! `GPU_PREFLIGHT_TEST_TRIXIE=DIR` names a Debian 13 with engines, `GPU_PREFLIGHT_TEST_DRIVER=DIR` NVIDIA's own libraries;
//! `integration/test.sh` makes both.

#![expect(clippy::disallowed_methods, reason = "tests lay out a world with std and look at the programs from outside")]

mod caller;
mod closed;
mod driver;
mod engines;
mod explain;
mod gpu;
mod healthcheck;
mod hook;
mod hostile;
mod image;
mod layers;
mod mutations;
mod nothing;
mod nvml;
mod operators;
mod places;
mod readme;
mod real;
mod register;
mod rehearsal;
mod runtime;
mod schema;
mod support;
