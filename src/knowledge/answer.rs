//! What an image needs of CUDA and of a driver, of all that was found in it.

use std::collections::BTreeMap;

use super::cuda::Answer as Told;
use super::needs::{self, Need};
use crate::model::image::{Answer, Build};
use crate::model::{CudaVersion, DriverVersion, Image, Knowledge};

/// Writes it into the image's facts: the whole's, and each framework's own.
pub fn tell(image: &mut Image, environment: &BTreeMap<String, String>, knowledge: &Knowledge) {
    image.answer = answer(image, environment, knowledge);
    if let crate::model::Observed::Known(frameworks) = &mut image.frameworks {
        for framework in frameworks.items.iter_mut().filter(|framework| framework.build == Build::Cuda) {
            framework.min_driver = framework.cuda.as_ref().and_then(|cuda| sure(knowledge.smallest_driver(cuda)));
        }
    }
}

/// What programs need counts; of an image in which none was found, the CUDA that it is made of.
pub fn answer(image: &Image, environment: &BTreeMap<String, String>, knowledge: &Knowledge) -> Answer {
    let programs = needs::of(image).ok();
    let needs: &[Need<'_>] = programs.as_ref().map_or(&[], |needs| &needs.all);
    let made_of = needs::of_image(environment, image).ok().flatten().map(|(cuda, _)| cuda);
    let of_programs: Vec<&CudaVersion> = needs.iter().map(|need| need.cuda).collect();
    let counting = if of_programs.is_empty() { made_of.iter().collect() } else { of_programs };
    let Some(newest) = counting.iter().copied().max() else { return Answer::default() };
    let runtime = exact(newest, image, made_of.as_ref());
    let smallest: Option<Vec<DriverVersion>> =
        counting.iter().map(|cuda| sure(knowledge.smallest_driver(cuda))).collect();
    // what its own toolkit can compile counts as well
    let toolkit = made_of.as_ref().map(|cuda| exact(cuda, image, None)).max(Some(runtime.clone()));
    let has_minor = |cuda: &CudaVersion| cuda.as_str().contains('.');
    let full = toolkit.filter(has_minor).and_then(|cuda| sure(knowledge.full_driver(&cuda)));
    Answer {
        cuda_runtime: Some(runtime),
        min_driver: smallest.and_then(|all| all.into_iter().max()),
        full_driver: full,
    }
}

/// Of a CUDA of which the major alone is known, its minor by the runtime library of that major; major and minor alone.
fn exact(cuda: &CudaVersion, image: &Image, made_of: Option<&CudaVersion>) -> CudaVersion {
    let runtimes = image.runtimes.seen().map_or(&[][..], |runtimes| &runtimes.items);
    let same = |other: &&CudaVersion| other.number(0) == cuda.number(0) && other.as_str().contains('.');
    let known = || runtimes.iter().map(|runtime| &runtime.version).chain(made_of).filter(same).max();
    let told = if cuda.as_str().contains('.') { Some(cuda) } else { known() };
    told.map_or_else(|| cuda.clone(), |cuda| CudaVersion::of(&[cuda.number(0), cuda.number(1)]))
}

/// What is newer than the tables has no number that could be said.
fn sure<T>(told: Option<Told<T>>) -> Option<T> {
    told.filter(|told| !told.by_rule).map(|told| told.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knowledge::BUILT_IN;
    use crate::model::image::{CudaLibrary, Framework};
    use crate::model::{Observed, Parts};

    fn framework(name: &str, cuda: Option<&str>) -> Framework {
        Framework {
            name: name.to_owned(),
            version: "1".to_owned(),
            build: if cuda.is_some() { Build::Cuda } else { Build::Cpu },
            cuda: cuda.map(|cuda| cuda.parse().unwrap()),
            source: format!("/usr/lib/python3/dist-packages/{name}"),
            sure: true,
            min_driver: None,
        }
    }

    fn said(frameworks: &[Framework], runtimes: &[&str], version: &str) -> [Option<String>; 3] {
        let library = |version: &&str| CudaLibrary {
            version: version.parse().unwrap(),
            source: "/opt/x/libcudart.so".to_owned(),
            linked_in: false,
        };
        let image = Image {
            frameworks: Observed::Known(Parts::whole(frameworks.to_vec())),
            runtimes: Observed::Known(Parts::whole(runtimes.iter().map(library).collect())),
            ..Image::default()
        };
        let environment = if version.is_empty() {
            BTreeMap::new()
        } else {
            BTreeMap::from([("CUDA_VERSION".to_owned(), version.to_owned())])
        };
        let answer = answer(&image, &environment, &BUILT_IN);
        [answer.cuda_runtime, answer.min_driver, answer.full_driver].map(|told| told.map(|told| told.to_string()))
    }

    fn texts(texts: [&str; 3]) -> [Option<String>; 3] {
        texts.map(|text| Some(text.to_owned()).filter(|text| !text.is_empty()))
    }

    #[test]
    fn every_framework_must_start_and_the_newest_decides() {
        let torch = framework("torch", Some("12.8"));
        assert_eq!(said(std::slice::from_ref(&torch), &[], ""), texts(["12.8", "525.60.13", "570.86.10"]));
        let both = [torch, framework("onnxruntime-gpu", Some("13"))];
        assert_eq!(said(&both, &[], ""), texts(["13", "580.65.06", ""]), "which 13 it is nobody knows");
        assert_eq!(said(&both, &["13.0.96"], ""), texts(["13.0", "580.65.06", "580.65.06"]));
        assert_eq!(said(&[framework("torch", Some("10.2"))], &[], ""), texts(["10.2", "440.33", "440.33"]));
    }

    #[test]
    fn without_a_framework_runtimes_and_then_the_toolkit_count() {
        assert_eq!(said(&[], &["12.4.127"], ""), texts(["12.4", "525.60.13", "550.54.14"]));
        assert_eq!(said(&[], &[], "11.8.0"), texts(["11.8", "450.80.02", "520.61.05"]));
        assert_eq!(said(&[framework("torch", None)], &[], ""), texts(["", "", ""]));
        // what runs needs less than the toolkit beside it
        let torch = [framework("torch", Some("12.1"))];
        assert_eq!(said(&torch, &[], "12.8.1"), texts(["12.1", "525.60.13", "570.86.10"]));
        assert_eq!(
            said(&[framework("torch", Some("99.0"))], &[], ""),
            texts(["99.0", "", ""]),
            "newer than the tables"
        );
    }

    #[test]
    fn each_framework_has_its_own_driver() {
        let mut image = Image {
            frameworks: Observed::Known(Parts::whole(vec![framework("torch", Some("12.8")), framework("x", None)])),
            ..Image::default()
        };
        tell(&mut image, &BTreeMap::new(), &BUILT_IN);
        let drivers = image.frameworks.seen().unwrap().items.iter().map(|framework| framework.min_driver.clone());
        assert_eq!(drivers.collect::<Vec<_>>(), [Some("525.60.13".parse().unwrap()), None]);
    }
}
