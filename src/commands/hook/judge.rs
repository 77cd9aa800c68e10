//! From a state to a decision.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use super::arguments::Arguments;
use super::gather::{self, Gathered};
use super::{BUDGET, configuration, journal};
use crate::checks;
use crate::collect::container::{Called, State};
use crate::collect::host::{self, Options, Scope};
use crate::collect::knowledge;
use crate::collect::tree::{Kind, Tree};
use crate::model::container::Given;
use crate::model::{Container, Facts, Host, Judged, Knowledge, Place, Report, Severity, Verdict};
use crate::policy::{self, Decision, Mode, Policy};
use crate::report::line;
use crate::report::log::{self as log_line, Entry};

/// What the hook does.
#[derive(Debug, Default)]
pub(super) struct Decided {
    /// Its exit code; 0 starts the container.
    pub(super) code: u8,
    /// What it prints.
    pub(super) text: String,
}

/// How long the driver may take to tell which GPU is which, where a check has to know.
const IDENTITIES: Duration = Duration::from_millis(300);

/// How often a machine that is not ready yet is looked at again (`wait_for_driver`).
const PAUSE: Duration = Duration::from_millis(250);

/// What the decision log has for a stage where the runtime decided.
const BEFORE_START: &str = "runtime";

/// What is kept of the time it was registered with, to end before the runtime ends it.
const RESERVE: Duration = Duration::from_secs(3);

/// Judges the container of a state.
pub(super) fn container(arguments: &Arguments, state: &[u8], started: Instant) -> Decided {
    let Some((files, here)) = trees(arguments) else { return Decided::default() };
    let state = match State::parse(state) {
        Ok(state) => state,
        Err(unseen) => {
            let remark = format!("{}: {}; the container starts unjudged", unseen.source, unseen.reason);
            let (at, mode, remarks) = (at(arguments), Mode::Enforce, vec![remark]);
            Record { arguments, files: &files, started, at, mode, said: "", remarks }.write(
                &unjudged(),
                &Container::default(),
                true,
            );
            return Decided::default();
        }
    };
    let called = Called::read(state, arguments.stage, arguments.own_program.clone(), here.as_ref().unwrap_or(&files));
    decide(arguments, &files, &called, started)
}

/// Judges a container before its runtime is called, as its hook would. Refused is only what is certain by now; all
/// else is the hook's to decide, and to log.
pub(super) fn before_start(arguments: &Arguments, id: &str, bundle: &Path, started: Instant) -> Decided {
    let Some((files, here)) = trees(arguments) else { return Decided::default() };
    let called = Called::handed_over(id.to_owned(), bundle.to_owned(), here.as_ref().unwrap_or(&files));
    if !called.is_foreseeable() {
        return Decided::default();
    }
    decide(arguments, &files, &called, started)
}

/// The machine's files. It may be laid out elsewhere: then also those of this one, where bundles lie.
fn trees(arguments: &Arguments) -> Option<(Tree, Option<Tree>)> {
    let root = arguments.host_root.as_deref().unwrap_or(Path::new("/"));
    let files = Tree::open(root, Kind::Host).ok()?;
    Some((files, arguments.host_root.as_ref().and_then(|_| Tree::open(Path::new("/"), Kind::Host).ok())))
}

fn decide(arguments: &Arguments, files: &Tree, called: &Called, started: Instant) -> Decided {
    if called.is_idle() {
        return Decided::default();
    }
    let foretold = called.moment().is_foretold();
    let at = if foretold { BEFORE_START } else { at(arguments) };
    let (policy, mut notes) = configuration::read(arguments.config.as_deref(), files);
    let mut remarks = notes.clone();
    remarks.extend(arguments.odd.iter().map(|odd| format!("ignored: {odd}")));
    let glance = called.by_spec();
    let mode = policy.mode_for(glance);
    let lowered = policy.asked_by(glance).lowered;
    let asked = !lowered.is_empty();
    remarks.extend(lowered);
    if mode == Mode::Off {
        // The administrator's own is no news; an image's is.
        if asked && !foretold {
            Record { arguments, files, started, at, mode, said: "", remarks }.write(&unjudged(), glance, true);
        }
        return Decided::default();
    }

    let (knowledge, odd) = knowledge::read(files, nix::unistd::geteuid().as_raw());
    remarks.extend_from_slice(&odd);
    notes.extend(odd);
    let waits = policy.wait_for_driver.min(arguments.timeout.saturating_sub(RESERVE));
    if waits < policy.wait_for_driver {
        remarks
            .push(format!("wait_for_driver is cut to {waits:?}: registered with a timeout of {:?}", arguments.timeout));
    }
    let question = Question { arguments, files, called, policy: &policy, knowledge: &knowledge };
    let mut judged = question.judge(started + BUDGET);
    while may_come_yet(&judged.report) && started.elapsed() + PAUSE < waits {
        std::thread::sleep(PAUSE);
        judged = question.judge(Instant::now() + BUDGET);
    }
    let ignored = judged.report.findings.iter().filter(|finding| finding.ignored);
    remarks.extend(ignored.map(|finding| format!("ignored: {}", finding.id)));
    if judged.gathered.late {
        remarks.push("decided at the deadline with what there was".to_owned());
    }
    let decision = policy.decide(&judged.report, &judged.gathered.container);
    let starts = decision == Decision::Start || mode == Mode::Warn;
    if foretold && (starts || judged.report.first_error().is_none()) {
        return Decided::default();
    }
    let (code, text) = match decision {
        Decision::Start => (0, String::new()),
        Decision::Refuse(code) => (
            if starts { 0 } else { code },
            line::hook(
                &judged.report,
                policy::essential_unknown(&judged.report),
                &notes,
                policy.allow_override.then(|| line::setting_by(&judged.gathered.container)),
                !starts,
            ),
        ),
    };
    let record = Record { arguments, files, started, at, mode, said: &text, remarks };
    record.write(&judged.report, &judged.gathered.container, starts);
    Decided { code, text }
}

struct Question<'a> {
    arguments: &'a Arguments,
    files: &'a Tree,
    called: &'a Called,
    policy: &'a Policy,
    knowledge: &'a Knowledge,
}

struct Answered {
    report: Report,
    gathered: Gathered,
}

impl Question<'_> {
    /// Looks and judges. What one container's judgement usually needs is looked at first; facts that a
    /// check then names as lacking are read, and it is asked again.
    fn judge(&self, deadline: Instant) -> Answered {
        let options = Options {
            laid_out: self.arguments.host_root.is_some(),
            driver_root: self.arguments.driver_root.clone(),
            scope: Scope::Hook,
        };
        // The machine is read while a child looks into the container.
        let read = || host::read(self.files, &options);
        let looking = gather::begin(self.called, &read, options.laid_out, self.files);
        let mut host = read();
        let gathered = looking.finish(self.called, &host, deadline);
        let mut outcomes = ask(&host, &gathered, self.knowledge);
        let mut read = BTreeSet::new();
        while Instant::now() < deadline && self.read_what_lacks(&outcomes, &mut host, &mut read) {
            outcomes = ask(&host, &gathered, self.knowledge);
        }
        Answered { report: policy::report(self.policy, Some(&gathered.container), &[], outcomes), gathered }
    }

    /// Reads facts of the machine that the checks named; `false`: there is none that was not tried.
    fn read_what_lacks(&self, outcomes: &[Judged], host: &mut Host, read: &mut BTreeSet<&'static str>) -> bool {
        let lacking =
            outcomes.iter().filter_map(|judged| judged.judgement.as_ref().err()).map(|unknown| unknown.fact.as_str());
        let wanted: BTreeSet<&'static str> =
            lacking.filter_map(|fact| FURTHER.into_iter().find(|known| *known == fact)).collect();
        let mut any = false;
        for fact in wanted {
            if read.insert(fact) {
                self.read_further(fact, host);
                any = true;
            }
        }
        any
    }

    fn read_further(&self, fact: &str, host: &mut Host) {
        let files = self.files;
        match fact {
            "host.gpus" => host.gpus = host::gpu_identities(files, host, Instant::now() + IDENTITIES),
            "host.driver.version" | "host.driver.open_kernel_modules" => {
                host::banner(files, &mut host.driver, Instant::now() + IDENTITIES);
            }
            "host.pci" => host.pci = host::pci(files),
            "host.dev_char" => host.dev_char = host::dev_char(files, &host.majors),
            "host.mig_capabilities" => host.mig_capabilities = host::mig_capabilities(files, &host.driver),
            "host.driver.module_options" => host.driver.module_options = host::module_options(files),
            "host.driver.module_files" => host.driver.module_files = host::module_files(files, &host.kernel),
            "host.driver.libraries" => {
                let architecture = host.architecture.seen().map(String::as_str);
                host.driver.libraries = host::libraries(files, &host.driver.root, architecture, &[]);
            }
            "host.toolkit.version" | "host.toolkit.programs" => host.toolkit = host::toolkit(files),
            "host.cdi" => {
                host.engines = host::engines(files);
                host.cdi = host::cdi(files, &host.engines);
            }
            "host.secure_boot" => host.secure_boot = host::secure_boot(files),
            "host.kernel_log" => host.kernel_log = host::kernel_log(files),
            _ => host.os = host::os(files),
        }
    }
}

/// What the first look leaves out.
const FURTHER: [&str; 15] = [
    "host.driver.version",
    "host.driver.open_kernel_modules",
    "host.gpus",
    "host.pci",
    "host.dev_char",
    "host.mig_capabilities",
    "host.driver.module_options",
    "host.driver.module_files",
    "host.driver.libraries",
    "host.toolkit.version",
    "host.toolkit.programs",
    "host.cdi",
    "host.secure_boot",
    "host.kernel_log",
    "host.os",
];

fn ask(host: &Host, gathered: &Gathered, knowledge: &Knowledge) -> Vec<Judged> {
    checks::judge(&Facts {
        host,
        image: &gathered.image,
        container: &gathered.container,
        knowledge,
        place: Place::Hook,
    })
}

/// What refuses the container is the lack of modules or nodes, and those may be on their way at boot.
fn may_come_yet(report: &Report) -> bool {
    let of_boot = [
        "driver-not-loaded",
        "uvm-module-not-loaded",
        "device-nodes-not-created-yet",
        "control-node-missing",
        "gpu-node-missing",
        "uvm-node-missing",
    ];
    let mut errors = report.counted().filter(|f| f.severity == Severity::Error).peekable();
    errors.peek().is_some() && errors.all(|f| of_boot.contains(&f.id))
}

fn at(arguments: &Arguments) -> &'static str {
    arguments.stage.name()
}

fn unjudged() -> Report {
    Report { verdict: Verdict::Unknown, findings: Vec::new(), unknown: Vec::new(), settled: Vec::new() }
}

/// What a line of the decision log needs besides the report.
struct Record<'a> {
    arguments: &'a Arguments,
    files: &'a Tree,
    started: Instant,
    at: &'a str,
    mode: Mode,
    /// What the hook says.
    said: &'a str,
    remarks: Vec<String>,
}

impl Record<'_> {
    fn write(&self, report: &Report, container: &Container, start: bool) {
        // A mount of /dev alone had to be looked at; it turned out to give nothing to who wants nothing.
        let idle = !container.wants_gpu.wanted && container.gpu_given.seen() == Some(&Given::None);
        if idle && start && self.remarks.is_empty() {
            return;
        }
        let entry = Entry {
            time: SystemTime::now(),
            stage: self.at,
            mode: self.mode.name(),
            start,
            took: self.started.elapsed(),
            said: self.said,
            remarks: &self.remarks,
        };
        let line = log_line::line(&entry, report, container);
        if let Err(errno) =
            journal::write(&line, self.arguments.log.as_deref(), self.arguments.host_root.as_deref(), self.files)
        {
            log::debug!("the decision log was not written: {errno}");
        }
    }
}
