//! What a container's command tells of the program that will run, and of the environment it will run in.

use super::monitors::is_monitor;
use super::toolkit::base_name;

/// What is looked at of a command line: launchers, and the program behind them.
const WORDS: usize = 8;
/// As much as a script or a command line says where it begins.
const LONGEST: usize = 16 << 10;

/// Programs that do nothing by themselves, and well-known ones that bring what they need of CUDA, or need none. That a
/// framework lies beside them says nothing of them (their own documentation, 2026-11).
const OTHERS: [&str; 22] = [
    "sleep",
    "tail",
    "cat",
    "true",
    "sh",
    "bash",
    "dash",
    "ash",
    "zsh",
    "fish",
    "tmux",
    "screen",
    "sshd",
    "dockerd",
    "ffmpeg",
    "ffprobe",
    "julia",
    "blender",
    "Xorg",
    "Xvfb",
    "glxinfo",
    "vulkaninfo",
];
/// Shells, which run what their `-c` says.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "ash", "zsh", "fish"];
/// What chooses another environment for what it runs.
const CHOOSERS: [&str; 14] = [
    "env",
    "su",
    "sudo",
    "runuser",
    "conda",
    "mamba",
    "micromamba",
    "poetry",
    "uv",
    "pdm",
    "hatch",
    "pipenv",
    "pixi",
    "pyenv",
];
/// Words by which a script or command does the same.
const CHOICES: [&str; 16] = [
    "activate",
    "conda ",
    "mamba ",
    "poetry ",
    "uv run",
    "pdm run",
    "pyenv",
    "pipenv ",
    "pixi ",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "VIRTUAL_ENV",
    "PYTHONPATH",
    "PYTHONHOME",
    "CUDA_VISIBLE_DEVICES",
    "cuda_compat",
];

fn name(word: &str) -> &str {
    let program = word.split_whitespace().next().unwrap_or_default();
    base_name(program)
}

/// Nothing speaks for a framework being what it runs: it is a monitor, another program, or a shell with nothing to do.
pub fn is_another(args: &[String]) -> bool {
    let first = args.first().map_or("", |word| name(word));
    // a shell's script decides, not the shell
    let has_script = SHELLS.contains(&first) && args.len() > 1;
    is_monitor(args) || (OTHERS.contains(&first) && !has_script)
}

/// Its command sets up another environment than the container's before it runs what it is for.
pub fn chooses_environment(args: &[String]) -> bool {
    args.iter().take(WORDS).any(|word| CHOOSERS.contains(&name(word)) || says_choice(word))
}

/// A script, or a part of a command, speaks of another environment.
pub fn says_choice(text: &str) -> bool {
    let end = (0..=LONGEST.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    let text = &text[..end];
    CHOICES.iter().any(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn what_is_no_frameworks_program_is_told() {
        for words in [&["sleep", "infinity"][..], &["/bin/bash"], &["ffmpeg", "-i", "x"], &["julia"], &["nvidia-smi"]] {
            assert!(is_another(&of(words)), "{words:?}");
        }
        for words in
            [&["/app/run"][..], &["python", "train.py"], &["bash", "-c", "python train.py"], &["vllm", "serve"], &[]]
        {
            assert!(!is_another(&of(words)), "{words:?}");
        }
    }

    #[test]
    fn who_chooses_another_environment_is_told() {
        for words in [
            &["env", "A=b", "python"][..],
            &["uv", "run", "x"],
            &["tini", "--", "conda", "run", "-n", "x"],
            &["sh", "-c", ". /srv/venv/bin/activate && run"],
            &["bash", "-c", "export LD_LIBRARY_PATH=/x; run"],
        ] {
            assert!(chooses_environment(&of(words)), "{words:?}");
        }
        assert!(!chooses_environment(&of(&["python", "-m", "vllm.entrypoints.openai.api_server"])));
        assert!(says_choice(&format!("{}source activate x", "#".repeat(100))));
        assert!(!says_choice(&"\u{e9}".repeat(LONGEST)));
    }
}
