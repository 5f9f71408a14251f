//! Values of torch and transformers (`tools/golden/nn_kernels.py`).

use loxia_nn::*;
use serde_json::Value;

fn fixture() -> Value {
    serde_json::from_str(include_str!("fixtures/kernels.json")).unwrap()
}

fn floats(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

#[test]
fn activations_are_those_of_torch() {
    let fixture = fixture();
    let x: Vec<f32> = floats(&fixture["activations"]["x"]).iter().map(|&x| x as f32).collect();
    let identity = Linear { weight: vec![1.0], bias: None, inputs: 1, outputs: 1 };
    for activation in Activation::ALL {
        let expected = floats(&fixture["activations"][activation.name()]);
        let mut slice = x.clone();
        activation.apply_slice(&mut slice);
        assert!(slice.iter().zip(&x).all(|(found, &x)| found.to_bits() == activation.apply(x).to_bits()));
        for kernel in Kernel::available() {
            let mut found = vec![0.0; x.len()];
            Dense::new(&identity, activation, kernel).unwrap().apply(&x, &mut found).unwrap();
            for ((x, found), expected) in x.iter().zip(found).zip(&expected) {
                // Relative to the result down to 1e-10: the tails of the sigmoid count. Those of GELU are x Φ(x)
                // with Φ as good as f32 can tell it from 0, as in torch's own f32.
                let floor = if activation == Activation::GeluErf { 3e-7 * f64::from(x.abs()) } else { 1e-10 };
                let allowed = 3e-6 * expected.abs() + floor;
                let error = (f64::from(found) - expected).abs();
                assert!(error <= allowed, "{kernel} {activation:?}({x}) = {found}, not {expected}");
            }
        }
    }
}

#[test]
fn missing_values_are_not_hidden() {
    let identity = Linear { weight: vec![1.0], bias: None, inputs: 1, outputs: 1 };
    for kernel in Kernel::available() {
        for activation in Activation::ALL {
            let mut found = [0.0; 20];
            Dense::new(&identity, activation, kernel).unwrap().apply(&[f32::NAN; 20], &mut found).unwrap();
            assert!(found.iter().all(|value| value.is_nan()), "{kernel} {activation:?}");
        }
    }
}

#[test]
fn buckets_are_those_of_transformers() {
    for case in fixture()["buckets"].as_array().unwrap() {
        let size = |name: &str| case[name].as_u64().unwrap() as usize;
        let relative = RelativeBuckets { buckets: size("buckets"), max_distance: size("max_distance") };
        for (distance, expected) in (-600..).zip(case["of"].as_array().unwrap()) {
            let expected = expected.as_u64().unwrap() as usize;
            assert_eq!(relative.bucket(distance), expected, "{relative:?}, distance {distance}");
        }
    }
}
