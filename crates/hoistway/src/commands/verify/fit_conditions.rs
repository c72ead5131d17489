//! The host profile and the kernel that a device model was fitted with: a prediction with others is doubtful.

use hoistway_device::Preset;
use hoistway_experiment::KernelOption;
use hoistway_sim::Host;

/// What a fit implies for predictions with its model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct FitConditions {
    /// The built-in host of the prediction, if the fit determines it.
    pub(super) host: Option<String>,
    /// Why the prediction is doubtful, as clauses.
    pub(super) doubts: Vec<String>,
}

impl FitConditions {
    /// For a prediction on the requested host, if any, and this kernel.
    ///
    /// # Errors
    /// If no host is requested and the fit's is not built in.
    pub(super) fn of(model: &Preset, requested: Option<&Host>, kernel: &KernelOption) -> Result<FitConditions, String> {
        let (name, fit) = (&model.name, model.calibration());
        let mut doubts = Vec::new();
        let host = match (&fit.host, requested) {
            (Some(fitted), None) => match Host::builtin(fitted) {
                Ok(host) => Some(host.name),
                Err(_) => {
                    return Err(format!(
                        "was fitted with the host profile {fitted}, which is not built in (expected --host with its file)"
                    ));
                }
            },
            (Some(fitted), Some(host)) if *fitted != host.name => {
                let other = &host.name;
                doubts.push(format!(
                    "the model of {name} was fitted with the host profile {fitted}, and the prediction is for {other}"
                ));
                None
            }
            _ => None,
        };
        if let Some(fitted) = &fit.kernel
            && !fitted
                .parse()
                .is_ok_and(|fitted: KernelOption| fitted.kernel.generation() == kernel.kernel.generation())
        {
            doubts.push(format!("the model of {name} was fitted for Linux {fitted}, and this is {kernel}"));
        }
        Ok(FitConditions { host, doubts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The conditions of a model that was fitted with this host for this kernel, on Linux 6.18.
    fn conditions(fit: Option<(&str, &str)>, requested: Option<&str>) -> Result<FitConditions, String> {
        let mut text = Preset::builtin_toml("null").unwrap().to_owned();
        if let Some((host, kernel)) = fit {
            text = text.replace("[calibration]", &format!("[calibration]\nhost = \"{host}\"\nkernel = \"{kernel}\""));
        }
        let host = requested.map(|name| Host::builtin(name).unwrap());
        let model = Preset::from_toml(&text, "my.toml").unwrap();
        FitConditions::of(&model, host.as_ref(), &"6.18.3".parse().unwrap())
    }

    #[test]
    fn the_prediction_has_the_host_of_the_fit_unless_another_is_requested_which_is_doubtful() {
        let host = |conditions: Result<FitConditions, String>| conditions.map(|all| (all.host, all.doubts.len()));
        assert_eq!(host(conditions(None, None)), Ok((None, 0)));
        assert_eq!(host(conditions(Some(("vm", "6.18.3")), None)), Ok((Some("vm".to_owned()), 0)));
        assert_eq!(host(conditions(Some(("vm", "6.18.3")), Some("vm"))), Ok((None, 0)));
        assert_eq!(host(conditions(Some(("vm", "6.18.3")), Some("server"))), Ok((None, 1)));
        assert!(conditions(Some(("mine", "6.18.3")), None).unwrap_err().contains("expected --host with its file"));
        assert_eq!(host(conditions(Some(("mine", "6.18.3")), Some("server"))), Ok((None, 1)));
    }

    #[test]
    fn a_fit_for_a_kernel_with_another_block_layer_is_doubtful() {
        let doubts = |kernel| conditions(Some(("server", kernel)), None).unwrap().doubts;
        assert_eq!(doubts("6.18.3"), [""; 0]);
        assert_eq!(doubts("5.10"), ["the model of null was fitted for Linux 5.10, and this is 6.18.3"]);
    }
}
