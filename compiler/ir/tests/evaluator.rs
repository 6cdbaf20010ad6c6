//! The clear evaluator against slow and obvious loops.

use fhec_ir::spec::Uniform;
use fhec_ir::{Conv2d, Divisor, Graph, MemberIdx, Op, Pads, Pool, Shape, Tensor, evaluate};

fn random(seed: u64, n: usize) -> Vec<f64> {
    let mut stream = Uniform::new(seed);
    (0..n).map(|_| stream.between(-1.0, 1.0)).collect()
}

fn run(op: Op, shape: Shape, x: &[f64], graph: &mut Graph) -> (Shape, Vec<f64>) {
    let input = graph.add(Op::Input { shape }, &[], "x").unwrap();
    let node = graph.add(op, &[input], "op").unwrap();
    graph.add(Op::Output, &[node], "y").unwrap();
    let value = evaluate(graph, &[x], MemberIdx::FIRST).unwrap().remove(0);
    (value.shape, value.data)
}

/// Sum over every tap of one output number, straight from the definition.
fn conv_at(conv: &Conv2d, w: &Tensor, x: &[f64], s: Shape, [o, oy, ox]: [usize; 3]) -> f64 {
    let [out, per_group, kh, kw] = *w.dims() else { panic!("weights have four extents") };
    let first = o / (out / conv.groups) * per_group;
    let mut sum = 0.0;
    for i in 0..per_group {
        for ky in 0..kh {
            for kx in 0..kw {
                let y = (oy * conv.stride[0] + ky * conv.dilation[0]) as isize - conv.pads.top as isize;
                let z = (ox * conv.stride[1] + kx * conv.dilation[1]) as isize - conv.pads.left as isize;
                if y >= 0 && z >= 0 && (y as usize) < s.h && (z as usize) < s.w {
                    let weight = w.get(((o * per_group + i) * kh + ky) * kw + kx);
                    sum += weight * x[((first + i) * s.h + y as usize) * s.w + z as usize];
                }
            }
        }
    }
    sum
}

#[test]
fn convolution_follows_its_definition() {
    let cases = [
        (Shape::new(3, 9, 7), [4, 3, 3, 3], [1, 1], Pads::same(1), [1, 1], 1),
        (Shape::new(4, 8, 8), [6, 2, 3, 3], [2, 2], Pads::same(1), [1, 1], 2),
        (Shape::new(5, 7, 9), [5, 1, 3, 3], [1, 2], Pads { top: 0, left: 1, bottom: 2, right: 3 }, [1, 1], 5),
        (Shape::new(2, 11, 10), [3, 2, 3, 2], [1, 1], Pads::NONE, [2, 3], 1),
        (Shape::new(3, 12, 12), [5, 3, 1, 1], [2, 2], Pads::NONE, [1, 1], 1),
    ];
    for (i, (shape, dims, stride, pads, dilation, groups)) in cases.into_iter().enumerate() {
        let mut graph = Graph::new();
        let weight = Tensor::from_f64(dims.to_vec(), random(i as u64, dims.iter().product())).unwrap();
        let bias = random(50 + i as u64, dims[0]);
        let conv = Conv2d {
            weight: graph.add_tensor(weight.clone()),
            bias: Some(graph.add_tensor(Tensor::vector(bias.clone()))),
            stride,
            pads,
            dilation,
            groups,
        };
        let x = random(100 + i as u64, shape.len());
        let (out, data) = run(Op::Conv2d(conv.clone()), shape, &x, &mut graph);
        for (k, &actual) in data.iter().enumerate() {
            let at = [k / out.area(), k % out.area() / out.w, k % out.w];
            let expected = conv_at(&conv, &weight, &x, shape, at) + bias[at[0]];
            assert!((actual - expected).abs() < 1e-12, "case {i} at {at:?}: {actual} is not {expected}");
        }
    }
}

#[test]
fn pooling_counts_only_cells_inside_when_asked() {
    let shape = Shape::new(1, 3, 3);
    let pool = |divisor| Pool { kernel: [3, 3], stride: [2, 2], pads: Pads::same(1), divisor };
    let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
    let (_, inside) = run(Op::Pool(pool(Divisor::ExcludePad)), shape, &x, &mut Graph::new());
    let (_, nine) = run(Op::Pool(pool(Divisor::Constant(9.0))), shape, &x, &mut Graph::new());
    assert_eq!(inside, [3.0, 4.0, 6.0, 7.0]);
    assert_eq!(nine, [12.0 / 9.0, 16.0 / 9.0, 24.0 / 9.0, 28.0 / 9.0]);
}

#[test]
fn polynomials_use_the_coefficients_of_their_channel() {
    let mut graph = Graph::new();
    let coeffs = graph.add_tensor(Tensor::from_f64(vec![3, 2], vec![1.0, 2.0, 0.0, 1.0, 3.0, -1.0]).unwrap());
    let (_, data) = run(Op::Poly { coeffs }, Shape::vector(2), &[2.0, 3.0], &mut graph);
    assert_eq!(data, [13.0, -4.0]);
}
