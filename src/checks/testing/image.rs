//! What an image has, for worlds that are about it.

use super::{World, known};
use crate::model::container::SpecHook;
use crate::model::image::{Build, Compat, CudaLibrary, Framework, Reach};
use crate::model::{Observed, Unknown};

impl World {
    /// A driver of this version, by every fact that tells it.
    pub(crate) fn driver(mut self, version: &str) -> Self {
        self.host.driver.version = known(Some(version.parse().unwrap()));
        self
    }

    /// All GPUs are this product.
    pub(crate) fn gpu(mut self, name: &str, device: u16) -> Self {
        if let Observed::Known(gpus) = &mut self.host.gpus {
            for gpu in gpus.iter_mut() {
                gpu.name = Some(name.to_owned());
            }
        }
        if let Observed::Known(functions) = &mut self.host.pci {
            for function in functions.iter_mut() {
                function.device = device;
            }
        }
        self
    }

    /// A framework of which all is known.
    pub(crate) fn framework(mut self, name: &str, version: &str, cuda: &str) -> Self {
        let Observed::Known(frameworks) = &mut self.image.frameworks else { panic!("no frameworks are known") };
        frameworks.items.push(Framework {
            name: name.to_owned(),
            version: version.to_owned(),
            build: Build::Cuda,
            cuda: Some(cuda.parse().unwrap()),
            source: format!("/usr/lib/python3/dist-packages/{name}/version.py"),
            sure: true,
            min_driver: None,
        });
        self
    }

    /// A CUDA runtime library.
    pub(crate) fn runtime(mut self, version: &str, source: &str) -> Self {
        let Observed::Known(runtimes) = &mut self.image.runtimes else { panic!("no runtimes are known") };
        runtimes.items.push(CudaLibrary {
            version: version.parse().unwrap(),
            source: source.to_owned(),
            linked_in: false,
        });
        self
    }

    /// A libcuda for forward compatibility where NVIDIA's toolkit looks; `before`: the directories that the
    /// image's loader asks before it, if the image leads its loader there.
    pub(crate) fn compat(mut self, version: &str, before: Option<&[&str]>) -> Self {
        let Observed::Known(compat) = &mut self.image.compat else { panic!("no compat is known") };
        let before = before.map(|paths| paths.iter().map(|path| (*path).to_owned()).collect());
        compat.items.push(Compat {
            directory: "/usr/local/cuda-X/compat".to_owned(),
            current: true,
            cache: true,
            version: Some(version.parse().unwrap()),
            note: None,
            reach: before.map(|before| Reach { source: "LD_LIBRARY_PATH".to_owned(), before, cached: None }),
        });
        self
    }

    /// The container has NVIDIA's hook that puts an image's compat directory to use.
    pub(crate) fn with_compat_hook(self) -> Self {
        self.with_hook("enable-cuda-compat")
    }

    /// The container has this one of NVIDIA's hooks of CDI.
    pub(crate) fn with_hook(mut self, what: &str) -> Self {
        let hook = SpecHook {
            stage: "createContainer".to_owned(),
            path: "/usr/bin/nvidia-cdi-hook".to_owned(),
            args: ["nvidia-cdi-hook", what].map(str::to_owned).into(),
            ..SpecHook::default()
        };
        if let Observed::Known(hooks) = &mut self.container.hooks {
            hooks.items.push(hook);
        }
        self
    }

    /// One place of the image could not be looked at.
    pub(crate) fn in_part(mut self) -> Self {
        let unread = |fact: &str| Unknown::new(fact, "/usr/lib/python3", "too many names");
        if let Observed::Known(frameworks) = &mut self.image.frameworks {
            frameworks.unread.push(unread("image.frameworks"));
        }
        self
    }
}
