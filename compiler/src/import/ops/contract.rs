//! Sums of products along any dimensions: MatMul in its general form and Einsum of two operands.
//!
//! With a constant it is a linear map. Two encrypted operands are spread over all dimensions by a map each, multiplied, and
//! summed by a third map.

use super::arithmetic::product;
use super::linear_map::{LinearMap, flatten, unflatten, vector};
use crate::import::constant::Constant;
use crate::import::node::Node;
use crate::import::reason::Reason;
use crate::import::translate::Translator;
use crate::import::value::{Encrypted, OpError};

/// One of the two operands.
pub(super) enum Factor {
    Encrypted(Encrypted),
    Constant(Constant),
}

impl Factor {
    fn dims(&self) -> &[usize] {
        match self {
            Self::Encrypted(x) => x.view.dims(),
            Self::Constant(constant) => &constant.dims,
        }
    }

    /// The same numbers with other extents.
    fn reshaped(self, dims: Vec<usize>) -> Option<Self> {
        Some(match self {
            Self::Encrypted(x) => Self::Encrypted(x.with_view(x.view.reshape(dims)?)),
            Self::Constant(constant) => Self::Constant(constant.with_dims(dims)),
        })
    }
}

/// Sums over the labels that the result does not have. A dimension without a label has extent one.
struct Contraction {
    /// Extent of every label.
    extents: Vec<usize>,
    left: Vec<Option<usize>>,
    right: Vec<Option<usize>>,
    out: Vec<usize>,
}

impl Contraction {
    fn apply(
        &self,
        cx: &mut Translator<'_>,
        node: &Node,
        left: &Factor,
        right: &Factor,
        dims: Vec<usize>,
    ) -> Result<Encrypted, OpError> {
        match (left, right) {
            (Factor::Encrypted(x), Factor::Constant(w)) => {
                self.with_constant(cx, node, (x, &self.left), (w, &self.right), dims)
            }
            (Factor::Constant(w), Factor::Encrypted(x)) => {
                self.with_constant(cx, node, (x, &self.right), (w, &self.left), dims)
            }
            (Factor::Encrypted(x), Factor::Encrypted(y)) => {
                let x = self.spread(cx, node, x, &self.left)?;
                let y = self.spread(cx, node, y, &self.right)?;
                let products = product(cx, node, x, y)?;
                let products = cx.committed(products)?;
                let mut map = LinearMap::new(cx, node, &products, dims)?;
                for i in 0..products.view.shape().len() {
                    map.add(self.place(&unflatten(i, &self.extents)), i, 1.0);
                }
                map.apply(cx, node, &products, None)
            }
            (Factor::Constant(_), Factor::Constant(_)) => Err(Reason::Operator.into()),
        }
    }

    fn with_constant(
        &self,
        cx: &mut Translator<'_>,
        node: &Node,
        (x, of_x): (&Encrypted, &[Option<usize>]),
        (constant, of_constant): (&Constant, &[Option<usize>]),
        dims: Vec<usize>,
    ) -> Result<Encrypted, OpError> {
        let n = cx.budget.take(node, &self.extents)?;
        let mut map = LinearMap::new(cx, node, x, dims)?;
        for i in 0..n {
            let index = unflatten(i, &self.extents);
            let weight = constant.get(flatten(&labelled(of_constant, &index), &constant.dims));
            map.add(self.place(&index), flatten(&labelled(of_x, &index), x.view.dims()), weight);
        }
        map.apply(cx, node, x, None)
    }

    /// An operand repeated along the labels that it does not have.
    fn spread(
        &self,
        cx: &mut Translator<'_>,
        node: &Node,
        x: &Encrypted,
        labels: &[Option<usize>],
    ) -> Result<Encrypted, OpError> {
        let x = vector(cx, node, x.clone())?;
        LinearMap::picks(cx, node, &x, self.extents.clone(), |at| Some(labelled(labels, at)))?
            .apply(cx, node, &x, None)
    }

    /// The position in the result.
    fn place(&self, index: &[usize]) -> usize {
        self.out.iter().fold(0, |position, &label| position * self.extents[label] + index[label])
    }
}

fn labelled(labels: &[Option<usize>], index: &[usize]) -> Vec<usize> {
    labels.iter().map(|label| label.map_or(0, |label| index[label])).collect()
}

/// A product over the last dimension of one and the last but one of the other, the others broadcast.
pub(super) fn matmul(
    cx: &mut Translator<'_>,
    node: &Node,
    left: Factor,
    right: Factor,
) -> Result<Encrypted, OpError> {
    let (is_row, is_column) = (left.dims().len() == 1, right.dims().len() == 1);
    let padded = |dims: &[usize], is_left: bool| match (dims, is_left) {
        ([n], true) => vec![1, *n],
        ([n], false) => vec![*n, 1],
        _ => dims.to_vec(),
    };
    let (a, b) = (padded(left.dims(), true), padded(right.dims(), false));
    let mismatch = || Reason::Broadcast { left: a.clone(), right: b.clone() };
    let ([.., m, k], [.., k2, n]) = (&a[..], &b[..]) else { return Err(mismatch().into()) };
    if k != k2 {
        return Err(mismatch().into());
    }
    let batch = a.len().max(b.len()) - 2;
    let mut extents = vec![1; batch];
    for dims in [&a, &b] {
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
    let (of_left, of_right) = (labels(&a, [0, 2]), labels(&b, [2, 1]));
    extents.extend([*m, *n, *k]);
    let mut dims: Vec<usize> = extents[..batch + 2].to_vec();
    if is_column {
        dims.remove(batch + 1);
    }
    if is_row {
        dims.remove(batch);
    }
    let contraction = Contraction { extents, left: of_left, right: of_right, out: (0..batch + 2).collect() };
    let left = left.reshaped(a.clone()).ok_or_else(mismatch)?;
    let right = right.reshaped(b.clone()).ok_or_else(mismatch)?;
    contraction.apply(cx, node, &left, &right, dims)
}

/// Einsum of two operands, or of one with a constant one.
pub(super) fn einsum(
    cx: &mut Translator<'_>,
    node: &Node,
    left: &Factor,
    right: Option<&Factor>,
) -> Result<Encrypted, OpError> {
    let equation: String = node.text("equation", "")?.chars().filter(|c| !c.is_whitespace()).collect();
    let unknown = || Reason::Attribute(format!("its equation is `{equation}`, which is not read here"));
    let (inputs, output) = equation.split_once("->").ok_or_else(unknown)?;
    let inputs: Vec<&str> = inputs.split(',').collect();
    let one = Factor::Constant(Constant::scalar(1.0));
    let (of_left, of_right) = match (&inputs[..], right) {
        ([a], None) => (*a, ""),
        ([a, b], Some(_)) => (*a, *b),
        _ => return Err(unknown().into()),
    };
    let right = right.unwrap_or(&one);
    let mut letters: Vec<char> = Vec::new();
    let mut extents: Vec<usize> = Vec::new();
    for (term, dims) in [(of_left, left.dims()), (of_right, right.dims())] {
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
        left: of_left.chars().map(label).collect(),
        right: of_right.chars().map(label).collect(),
        out,
        extents,
    };
    contraction.apply(cx, node, left, right, dims)
}
