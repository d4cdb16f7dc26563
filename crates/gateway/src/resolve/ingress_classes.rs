//! Which Ingresses are Weir's: those of IngressClasses that name its controller.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::objects::ingress::{Ingress, IngressClass};
use crate::resolve::cluster::{Objects, Settings};
use crate::resolve::status::{Notice, Problem};

/// The older way to name a class.
const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";

/// The IngressClasses that name Weir's controller.
#[derive(Clone, Debug, Default)]
pub struct Classes {
    ours: BTreeSet<Arc<str>>,
    /// The class of Ingresses that name none.
    default: Option<Arc<str>>,
}

impl Classes {
    /// Indexes the IngressClasses. Of several default ones the newest counts, as in Kubernetes' own admission.
    pub fn new(objects: &Objects, settings: &Settings) -> Classes {
        let is_ours =
            |class: &&Arc<IngressClass>| class.spec.controller == settings.ingress_controller_name;
        let ours: Vec<_> = objects.ingress_classes.values().filter(is_ours).collect();
        let default = ours.iter().filter(|class| class.is_default()).max_by(|a, b| {
            let created = a.metadata.creation_timestamp.cmp(&b.metadata.creation_timestamp);
            created.then_with(|| b.metadata.name.cmp(&a.metadata.name))
        });
        let name = |class: &Arc<IngressClass>| Arc::clone(&class.metadata.name);
        Classes {
            default: default.map(|class| name(class)),
            ours: ours.iter().map(|class| name(class)).collect(),
        }
    }

    /// Returns the class of an Ingress. `None`: Weir does not serve it.
    pub fn of(&self, ingress: &Ingress) -> Option<&Arc<str>> {
        let annotations = &ingress.metadata.annotations;
        let old = || annotations.get(CLASS_ANNOTATION).map(String::as_str);
        match ingress.spec.ingress_class_name.as_deref().or_else(old) {
            Some(name) => self.ours.get(name),
            None => self.default.as_ref(),
        }
    }
}

/// Returns notices about the IngressClasses that name Weir's controller.
pub fn notices(objects: &Objects, settings: &Settings) -> Vec<Notice> {
    let classes = objects.ingress_classes.values();
    let ours = classes.filter(|class| class.spec.controller == settings.ingress_controller_name);
    let with_parameters = ours.filter_map(|class| Some((class, class.spec.parameters.as_ref()?)));
    let notice = |(class, parameters): (&Arc<IngressClass>, &_)| {
        let crate::objects::ingress::IngressParameters { kind, name } = parameters;
        let message = format!(
            "spec.parameters refers to {kind} {name}, but Weir has no parameters. They have no \
             effect. Remove them."
        );
        let problem = Problem::new("UnsupportedParameters", message);
        Notice::new("IngressClass", &class.metadata, problem)
    };
    with_parameters.map(notice).collect()
}
