//! The README's commands do what it says.
//!
//! Every code block that begins with ```` ```console ```` is run, line by line as a reader would type it, in one
//! shell, in a directory with the containers named below, on a simulated machine with two GPUs:
//!
//! ````text
//! ```console exit=1
//! $ gpu-preflight container ./no-gpus
//! fail: …
//! $ gpu-preflight container ./good --quiet
//! ```
//! ````
//!
//! * A line that begins with `$ ` is a command; it goes on in the next line after a `\`.
//! * The line behind it, if it is no command, is the first line of what it prints (stdout, then stderr). `…` stands
//!   for anything; further lines are not compared, nor is anything where no line follows.
//! * `exit=N` behind `console` is the exit code of the block's **last** command; without it 0. Earlier commands may
//!   exit as they like: to show one that refuses, give it a block of its own.
//! * What cannot be run here (docker, a cluster, installing) stands in a block of another kind, such as ```` ```sh ````.
//!
//! Containers: `good` has two GPUs by CDI, `no-gpus` asks for one and was given none, `plain` neither wants nor has
//! one, `stale-uvm` has a node with an old number, `cuda-too-new` has `PyTorch` for CUDA 13. Images, as OCI layouts:
//! `torch-cuda-12` and `torch-cuda-13`. `machine` is a machine with two GPUs, laid out; `node` is one with docker, podman
//! and NVIDIA's toolkit besides.

use std::fmt::Write as _;
use std::path::Path;

use crate::support::bundle::Bundle;
use crate::support::host::SimHost;
use crate::support::layout::Layout;
use crate::support::{needs, programs, repository, scratch, write};

#[derive(Debug, PartialEq, Eq)]
struct Block {
    line: usize,
    exit: i32,
    commands: Vec<Command>,
}

#[derive(Debug, PartialEq, Eq)]
struct Command {
    text: String,
    prints: Option<String>,
}

#[test]
fn its_commands_do_what_it_says() {
    if !needs::root() || !needs::released() {
        return;
    }
    let text = std::fs::read_to_string(repository().join("README.md")).expect("README.md");
    let blocks = blocks(&text);
    assert!(!blocks.is_empty(), "README.md has no console block");
    for block in blocks {
        run(&block);
    }
}

/// Runs a block: every command's output into a file of its own, the last one's exit code as the shell's.
fn run(block: &Block) {
    let scratch = scratch();
    let place = scratch.at("place");
    lay(&place);
    let mut script = format!(
        "export PATH={}:$PATH\ncd {}\n",
        programs::cli().parent().expect("a directory").display(),
        place.display()
    );
    for (number, command) in block.commands.iter().enumerate() {
        let (out, err) = (scratch.at(&format!("out-{number}")), scratch.at(&format!("err-{number}")));
        let _ = writeln!(script, "{{\n{}\n}} >{} 2>{}", command.text, out.display(), err.display());
    }
    write(&scratch.at("script"), script);
    let ended = SimHost::default().run(["bash".into(), scratch.at("script")]).end();
    let printed = |number: usize| {
        ["out", "err"].map(|name| std::fs::read_to_string(scratch.at(&format!("{name}-{number}"))).unwrap_or_default())
    };
    for (number, command) in block.commands.iter().enumerate() {
        let (wanted, output) = (command.prints.as_deref(), printed(number));
        let first = output.iter().flat_map(|text| text.lines()).next().unwrap_or_default();
        assert!(
            wanted.is_none_or(|wanted| fits(wanted, first)),
            "README.md:{}: `{}` prints {first:?}, not {wanted:?}",
            block.line,
            command.text
        );
    }
    let last = block.commands.len() - 1;
    assert_eq!(ended.code(), block.exit, "README.md:{}: {:?}", block.line, printed(last));
}

fn lay(place: &Path) {
    Bundle::plain(&place.join("plain")).write();
    Bundle::asking(&place.join("no-gpus")).write();
    Bundle::cdi(&place.join("good"), 2).write();
    let mut stale = Bundle::cdi(&place.join("stale-uvm"), 2);
    stale.renumber_uvm(507);
    stale.write();
    let too_new = Bundle::cdi(&place.join("cuda-too-new"), 2);
    too_new.write();
    let packages = too_new.rootfs().join("usr/lib/python3/dist-packages");
    std::fs::create_dir_all(packages.join("torch-2.11.0.dist-info")).expect("a package");
    write(&packages.join("torch/version.py"), "__version__ = '2.11.0+cu130'\ncuda: Optional[str] = '13.0'\n");
    Layout::torch("2.6.0+cu124", "12.4").lay(&place.join("torch-cuda-12"));
    Layout::torch("2.11.0", "13.0").lay(&place.join("torch-cuda-13"));
    SimHost::default().lay(&place.join("machine"));
    let node = place.join("node");
    SimHost::default().lay(&node);
    write(&node.join("etc/docker/daemon.json"), "{\n    \"log-level\": \"warn\"\n}\n");
    for program in ["dockerd", "podman", "nvidia-container-runtime-hook", "nvidia-container-cli", "nvidia-ctk"] {
        write(&node.join("usr/bin").join(program), "");
    }
    let package = "Package: nvidia-container-toolkit\nStatus: install ok installed\nVersion: 1.17.8-1\n";
    write(&node.join("var/lib/dpkg/status"), package);
}

/// `…` stands for anything.
fn fits(wanted: &str, line: &str) -> bool {
    let mut parts = wanted.trim_end().split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.trim_end().strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = text.lines().enumerate().map(|(number, line)| (number + 1, line));
    while let Some((line, fence)) = lines.next() {
        let Some(info) = fence.strip_prefix("```console") else { continue };
        let exit = info.trim().strip_prefix("exit=").map_or(0, |code| code.parse().expect("an exit code"));
        let inside: Vec<&str> = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
        blocks.push(Block { line, exit, commands: commands(&inside) });
    }
    blocks
}

fn commands(lines: &[&str]) -> Vec<Command> {
    let mut commands: Vec<Command> = Vec::new();
    let mut open = false;
    for line in lines {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (_, Some(command)) if open => command.text = format!("{}\n{line}", command.text),
            (Some(text), _) => commands.push(Command { text: text.to_owned(), prints: None }),
            (None, Some(command)) if command.prints.is_none() => command.prints = Some((*line).to_owned()),
            (None, _) => {}
        }
        open = line.ends_with('\\');
    }
    assert!(!commands.is_empty(), "a console block without a command: {lines:?}");
    commands
}

#[test]
fn blocks_are_read_as_the_convention_has_it() {
    let text = "a\n```console\n$ one \\\n  two\nprints this\nand that\n$ three\n```\n```sh\n$ no\n```\n```console exit=2\n$ four\n```\n";
    let command =
        |text: &str, prints: Option<&str>| Command { text: text.to_owned(), prints: prints.map(str::to_owned) };
    assert_eq!(
        blocks(text),
        [
            Block {
                line: 2,
                exit: 0,
                commands: vec![command("one \\\n  two", Some("prints this")), command("three", None)]
            },
            Block { line: 12, exit: 2, commands: vec![command("four", None)] },
        ]
    );
    assert!(fits("fail: … errors", "fail: 2 errors") && fits("…", "x") && fits("same", "same"));
    assert!(!fits("fail: …", "pass: 1") && !fits("same", "same but longer") && !fits("a…c…e", "abcd"));
}
