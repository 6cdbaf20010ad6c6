//! Products with a constant along any dimensions: MatMul in its general form and Einsum of two operands.

use super::linear_map::{LinearMap, flatten, unflatten};
use crate::import::constant::Constant;
use crate::import::node::Node;
use crate::import::reason::Reason;
use crate::import::translate::Translator;
use crate::import::value::{Encrypted, OpError};

/// Sums over the labels that the result does not have. A dimension without a label has extent one.
struct Contraction {
    /// Extent of every label.
    extents: Vec<usize>,
    x: Vec<Option<usize>>,
    constant: Vec<Option<usize>>,
    out: Vec<usize>,
}

impl Contraction {
    fn apply(
        &self,
        cx: &mut Translator<'_>,
        node: &Node,
        x: &Encrypted,
        constant: &Constant,
        dims: Vec<usize>,
    ) -> Result<Encrypted, OpError> {
        let n = cx.budget.take(node, &self.extents)?;
        let mut map = LinearMap::new(cx, node, x, dims)?;
        let out_extents: Vec<usize> = self.out.iter().map(|&l| self.extents[l]).collect();
        for i in 0..n {
            let index = unflatten(i, &self.extents);
            let at = |labels: &[Option<usize>], dims: &[usize]| {
                let place: Vec<usize> = labels.iter().map(|l| l.map_or(0, |l| index[l])).collect();
                flatten(&place, dims)
            };
            let out: Vec<usize> = self.out.iter().map(|&l| index[l]).collect();
            let weight = constant.get(at(&self.constant, &constant.dims));
            map.add(flatten(&out, &out_extents), at(&self.x, x.view.dims()), weight);
        }
        map.apply(cx, node, x, None)
    }
}

/// x·W or W·x over the last two dimensions, the others broadcast.
pub(super) fn matmul(
    cx: &mut Translator<'_>,
    node: &Node,
    x: &Encrypted,
    weight: &Constant,
    is_left: bool,
) -> Result<Encrypted, OpError> {
    let padded = |dims: &[usize], is_first: bool| -> Vec<usize> {
        match (dims, is_first) {
            ([n], true) => vec![1, *n],
            ([n], false) => vec![*n, 1],
            _ => dims.to_vec(),
        }
    };
    let (a, b) = (padded(x.view.dims(), is_left), padded(&weight.dims, !is_left));
    let (left, right) = if is_left { (&a, &b) } else { (&b, &a) };
    let mismatch = || Reason::Broadcast { left: left.clone(), right: right.clone() };
    let ([.., m, k], [.., k2, n]) = (&left[..], &right[..]) else { return Err(mismatch().into()) };
    if k != k2 {
        return Err(mismatch().into());
    }
    let batch = left.len().max(right.len()) - 2;
    let mut extents = vec![1; batch];
    for dims in [left, right] {
        let skip = batch + 2 - dims.len();
        for (i, &d) in dims[..dims.len() - 2].iter().enumerate() {
            match (extents[skip + i], d) {
                (_, 1) => {}
                (e, d) if e == d || e == 1 => extents[skip + i] = d,
                _ => return Err(mismatch().into()),
            }
        }
    }
    let labels = |dims: &[usize], last: [usize; 2]| -> Vec<Option<usize>> {
        let skip = batch + 2 - dims.len();
        let leading = dims[..dims.len() - 2].iter().enumerate();
        leading.map(|(i, &d)| (d > 1).then_some(skip + i)).chain(last.map(|l| Some(batch + l))).collect()
    };
    // Labels behind the batch: rows, columns, and the inner dimension that is summed over.
    let (of_left, of_right) = (labels(left, [0, 2]), labels(right, [2, 1]));
    extents.extend([*m, *n, *k]);
    let mut dims: Vec<usize> = extents[..batch + 2].to_vec();
    if x.view.dims().len() == 1 {
        dims.remove(if is_left { batch } else { batch + 1 });
    } else if weight.dims.len() == 1 {
        dims.remove(if is_left { batch + 1 } else { batch });
    }
    let (x_labels, constant) = if is_left { (of_left, of_right) } else { (of_right, of_left) };
    let contraction = Contraction { extents, x: x_labels, constant, out: (0..batch + 2).collect() };
    let x = x.with_view(x.view.reshape(a.clone()).ok_or_else(mismatch)?);
    contraction.apply(cx, node, &x, &weight.with_dims(b.clone()), dims)
}

/// Einsum of an encrypted value and a constant, or of an encrypted value alone.
pub(super) fn einsum(
    cx: &mut Translator<'_>,
    node: &Node,
    x: &Encrypted,
    constant: Option<&Constant>,
    is_left: bool,
) -> Result<Encrypted, OpError> {
    let equation: String = node.text("equation", "")?.chars().filter(|c| !c.is_whitespace()).collect();
    let unknown = || Reason::Attribute(format!("its equation is `{equation}`, which is not read here"));
    let (inputs, output) = equation.split_once("->").ok_or_else(unknown)?;
    let inputs: Vec<&str> = inputs.split(',').collect();
    let one = Constant::scalar(1.0);
    let (of_x, of_constant) = match (&inputs[..], constant, is_left) {
        ([a], None, _) => (*a, ""),
        ([a, b], Some(_), true) => (*a, *b),
        ([a, b], Some(_), false) => (*b, *a),
        _ => return Err(unknown().into()),
    };
    let constant = constant.unwrap_or(&one);
    let mut letters: Vec<char> = Vec::new();
    let mut extents: Vec<usize> = Vec::new();
    for (term, dims) in [(of_x, x.view.dims()), (of_constant, &constant.dims[..])] {
        if term.chars().count() != dims.len() {
            return Err(unknown().into());
        }
        for (i, (letter, &extent)) in term.chars().zip(dims).enumerate() {
            let is_repeated = term.chars().take(i).any(|c| c == letter);
            match letters.iter().position(|l| *l == letter) {
                _ if !letter.is_ascii_alphabetic() || is_repeated => return Err(unknown().into()),
                Some(at) if extents[at] != extent => {
                    return Err(node.malformed(format!("has two extents for `{letter}`")).into());
                }
                Some(_) => {}
                None => {
                    letters.push(letter);
                    extents.push(extent);
                }
            }
        }
    }
    let label = |c: char| letters.iter().position(|l| *l == c);
    let out: Option<Vec<usize>> = output.chars().map(label).collect();
    let out = out.filter(|out| (0..out.len()).all(|i| !out[..i].contains(&out[i]))).ok_or_else(unknown)?;
    let dims = out.iter().map(|&l| extents[l]).collect();
    let contraction = Contraction {
        x: of_x.chars().map(label).collect(),
        constant: of_constant.chars().map(label).collect(),
        out,
        extents,
    };
    contraction.apply(cx, node, x, constant, dims)
}
