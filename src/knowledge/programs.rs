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

/// Nothing is started, or a shell with nothing to do: what is run in it, whoever starts it says.
pub fn is_bare(args: &[String]) -> bool {
    args.len() < 2 && args.first().is_none_or(|word| SHELLS.contains(&name(word)))
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

/// Programs of health checks that ask the network or the list of processes.
const ASKING: [&str; 9] = ["curl", "wget", "nc", "ncat", "pgrep", "pidof", "ps", "grpc_health_probe", "http"];
/// Words by which a health check, or what it asks, may be about the GPU.
const OF_GPUS: [&str; 7] = ["gpu", "nvidia", "cuda", "nvml", "torch", "python", ".sh"];

/// A health check that asks the network or a process and has no word of a GPU. What a script does nobody knows.
pub fn is_blind_check(command: &str) -> bool {
    let lower = command.to_ascii_lowercase();
    let asks = lower.split([' ', ';', '&', '|', '(']).any(|word| ASKING.contains(&base_name(word)));
    asks && !OF_GPUS.iter().any(|word| lower.contains(word))
}

/// A command that takes the host's list of devices for the container's own numbers.
pub fn uses_host_index(command: &str) -> bool {
    let uses = ["-i", "--id", "CUDA_VISIBLE_DEVICES", "device"];
    let asked = |start: &&str| {
        command.match_indices("NVIDIA_VISIBLE_DEVICES").any(|(at, _)| {
            let before = command.get(..at).unwrap_or_default().trim_end_matches(['$', '{', '"', '\'', '=', ' ']);
            before.ends_with(*start)
        })
    };
    let expands = command.contains("$NVIDIA_VISIBLE_DEVICES") || command.contains("${NVIDIA_VISIBLE_DEVICES");
    expands && uses.iter().any(asked)
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
    fn the_hosts_numbers_are_told_by_what_they_are_used_for() {
        assert!(uses_host_index("nvidia-smi -i ${NVIDIA_VISIBLE_DEVICES}"));
        assert!(uses_host_index("nvidia-smi --id=\"$NVIDIA_VISIBLE_DEVICES\""));
        assert!(uses_host_index("CUDA_VISIBLE_DEVICES=$NVIDIA_VISIBLE_DEVICES run"));
        assert!(!uses_host_index("echo $NVIDIA_VISIBLE_DEVICES") && !uses_host_index("-i NVIDIA_VISIBLE_DEVICES"));
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
