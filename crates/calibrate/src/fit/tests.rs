//! Fits to rows whose parameters are known, because a model made them.

use super::*;

const LOADS: &str = "rw,bs,iodepth,iops\n\
    randread,4k,1,1\nrandread,4k,64,1\nrandread,4k,512,1\n\
    randwrite,4k,16,1\nrandwrite,4k,128,1\n";

/// The rows that a measurement of the preset `like` with changed values would give: IOPS and mean latency, each with an
/// error of up to 2 %.
fn measured(like: &Preset, values: &[(&str, f64)]) -> Vec<MeasurementRow> {
    let values: Vec<_> = values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    let device = AdjustablePreset::new(like).unwrap().with_values(&values).unwrap();
    let mut rows = from_csv(LOADS, "loads").unwrap();
    let mut noise = 1_u64;
    for row in &mut rows {
        row.figures = vec![MeasuredFigure { what: FigureKind::Iops, value: 5e4 }];
        // The latency that corresponds to this rate.
        row.figures[0].value = simulated::figures(row, &device, &host(), Kernel::DEFAULT).unwrap()[0];
        row.figures.push(MeasuredFigure {
            what: FigureKind::Mean,
            value: f64::from(row.outstanding()) * 1e6 / row.figures[0].value,
        });
        let figures = simulated::figures(row, &device, &host(), Kernel::DEFAULT).unwrap();
        for (figure, model) in row.figures.iter_mut().zip(figures) {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            figure.value = model * (0.98 + 0.04 * (noise >> 33) as f64 / f64::from(1_u32 << 31));
        }
    }
    rows
}

fn host() -> Host {
    Host::builtin(Host::DEFAULT).unwrap()
}

fn like() -> Preset {
    Preset::builtin("CT1000P3PSSD8").unwrap()
}

fn plan(rows: Vec<MeasurementRow>, parameters: &[&str]) -> FitPlan {
    FitPlan {
        rows,
        source: "m.csv".to_owned(),
        like: like(),
        host: host(),
        kernel: Kernel::DEFAULT,
        parameters: parameters.iter().map(|name| (*name).to_owned()).collect(),
        evaluations: 600,
        name: "fitted".to_owned(),
    }
}

#[test]
fn the_parameters_of_a_preset_are_found_again_from_its_own_noisy_rows() {
    let before = AdjustablePreset::new(&like()).unwrap();
    let truth: Vec<(&str, f64)> = [("read_us", 0.7), ("host_to_device_us", 3.0), ("program_us", 1.4)]
        .map(|(name, factor)| (name, before.value(name).unwrap() * factor))
        .to_vec();
    let fit = fit(&plan(measured(&like(), &truth), &["read_us", "host_to_device_us", "program_us"]), |_| true).unwrap();
    assert!(fit.has_converged, "{}", fit.report());
    for (parameter, (name, value)) in fit.parameters.iter().zip(&truth) {
        let off = parameter.value / value - 1.0;
        assert!(parameter.is_determined() && off.abs() < 0.1, "{name} {value}: {off:+.3}\n{}", fit.report());
    }
    let worst = fit.residuals.iter().map(|(_, figure, model)| (model / figure.value - 1.0).abs()).fold(0.0, f64::max);
    assert!(worst < 0.08, "{worst}\n{}", fit.report());
    let calibration = fit.preset.calibration();
    assert_eq!(calibration.residuals.len(), 10);
    let fitted_for = [&calibration.host, &calibration.kernel].map(|text| text.clone().unwrap());
    assert_eq!(fitted_for, [Host::DEFAULT.to_owned(), Kernel::DEFAULT.to_string()]);
    assert!(calibration.sources["flash.read_us"].starts_with("fit to m.csv, known to"), "{calibration:?}");
    assert!(calibration.range.is_none() && calibration.valid_range.contains("each alone, 1 to 512 outstanding"));
    let text = PresetFile::from(fit.preset.clone()).to_toml().unwrap();
    assert_eq!(Preset::from_toml(&text, "fitted.toml").unwrap(), fit.preset);
}

#[test]
fn parameters_that_rows_do_not_determine_are_reported() {
    let rows = measured(&like(), &[]).into_iter().filter(|row| row.reads_percent == 100 && row.depth == 1).collect();
    let fit = fit(&plan(rows, &["read_us", "program_us"]), |_| true).unwrap();
    let [read, program] = &fit.parameters[..] else { panic!("two parameters") };
    assert!(read.is_determined() && !program.is_determined(), "{}", fit.report());
    assert!(fit.report().contains("flash.program_us") && fit.report().contains("NOT DETERMINED by these rows"));
    assert!(fit.preset.calibration().sources["flash.program_us"].contains("does not determine it"));
}

#[test]
fn two_parameters_with_the_same_effect_are_reported_as_interchangeable() {
    let rows = measured(&like(), &[]).into_iter().filter(|row| row.reads_percent == 100 && row.depth == 1).collect();
    let fit = fit(&plan(rows, &["read_us", "host_to_device_us"]), |_| true).unwrap();
    assert!(fit.parameters.iter().all(|parameter| !parameter.is_determined()), "{}", fit.report());
    assert_eq!(fit.parameters[0].like.as_deref(), Some("flash.host_to_device_us"), "{}", fit.report());
}

#[test]
fn a_fit_that_is_stopped_has_the_best_so_far_and_is_marked() {
    let rows = measured(&like(), &[("read_us", 40.0)]);
    let fit = fit(&plan(rows, &["read_us"]), |done| done < 4).unwrap();
    assert!(!fit.has_converged && fit.evaluations == 4);
    assert!(fit.report().starts_with("NOT CONVERGED: the best of 4 evaluations"), "{}", fit.report());
    assert!(fit.preset.calibration().on.contains("did not converge"));
}

#[test]
fn too_few_figures_are_refused_with_the_parameters_that_get_none() {
    let mut rows = from_csv("rw,bs,iodepth,iops\nrandread,4k,1,10000\n", "m.csv").unwrap();
    let error = fit(&plan(rows.clone(), &["read_us", "dies"]), |_| true).unwrap_err().to_string();
    assert!(
        error.starts_with("1 figure(s) are too few for 2 parameters: they are enough for read_us, but not for dies"),
        "{error}"
    );
    let error = fit(&plan(rows.clone(), &["redd_us"]), |_| true).unwrap_err().to_string();
    assert!(error.starts_with("`redd_us` is not a parameter that can be fitted; expected some of"), "{error}");
    rows[0].line = 7;
    let null = FitPlan { like: Preset::builtin("null").unwrap(), ..plan(rows, &[]) };
    assert!(fit(&null, |_| true).unwrap_err().to_string().contains("null has a model without parameters"));
}
