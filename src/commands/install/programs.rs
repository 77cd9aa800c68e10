//! The static program where the registrations name it: under one name the hook, under another the runtime.

use super::disk::Disk;
use crate::collect::image::binary;
use crate::commands::output::Failed;
use crate::register::{DIRECTORY, HOOK, RUNTIME};

/// What is to be put there.
pub(super) struct Programs {
    /// The program from beside the command line program, if it is another than the one that is there.
    new: Option<Vec<u8>>,
    /// The name as runtime is to be made.
    link: bool,
}

impl Programs {
    /// What is there, what comes with us, and what follows.
    pub(super) fn plan(disk: &Disk<'_>, beside: Option<Vec<u8>>) -> Result<Self, Failed> {
        let there = disk.program(HOOK);
        let runtime = disk.program(RUNTIME);
        // what others may write, or somebody else owns, is made anew
        let is_sound = disk.is_ours_alone(HOOK);
        let new = beside.filter(|beside| there.as_ref() != Some(beside));
        let new = new.or_else(|| there.clone().filter(|_| !is_sound));
        let Some(program) = new.as_ref().or(there.as_ref()) else {
            return Err(Failed::new(
                HOOK,
                "the static program is absent, there and beside this one",
                "packaging/build.sh DIR, then DIR/gpu-preflight install",
            ));
        };
        if !binary::is_static(program) {
            return Err(Failed::new(
                if new.is_some() { "gpu-preflight-hook beside this program" } else { HOOK },
                "it is linked dynamically: an image's variables could lead it to the image's libraries",
                "build it with packaging/build.sh; cargo build and cargo install make no static program",
            ));
        }
        let link = runtime.as_ref() != Some(program);
        Ok(Self { new, link })
    }

    /// What will be done, in words; nothing: they are there.
    pub(super) fn words(&self) -> Option<String> {
        match (&self.new, self.link) {
            (Some(_), _) => Some(format!("gpu-preflight-hook and gpu-preflight-runtime into {DIRECTORY}")),
            (None, true) => Some(format!("{RUNTIME} as another name of gpu-preflight-hook")),
            (None, false) => None,
        }
    }

    /// Puts them there.
    pub(super) fn carry_out(&self, disk: &Disk<'_>) -> Result<(), Failed> {
        let failed = |path: &str| {
            let path = path.to_owned();
            move |reason: String| Failed::new(path, reason, "run it as root, where /usr can be written to")
        };
        if let Some(new) = &self.new {
            if !disk.is_ours_alone(HOOK) {
                // a file keeps its owner and mode where its text is replaced
                disk.remove(HOOK, &[]).map_err(failed(HOOK))?;
            }
            disk.write(HOOK, new, 0o755).map_err(failed(HOOK))?;
        }
        if self.link {
            disk.link(HOOK, RUNTIME).map_err(failed(RUNTIME))?;
        }
        Ok(())
    }
}
