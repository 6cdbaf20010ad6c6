//! Source text with mutants in it: every one is a branch that is taken if the environment names its number.
//!
//! One mutant is on at a time, so a branch has the original text of what stands inside it.

use std::collections::BTreeSet;
use std::ops::Range;

use proc_macro2::{LineColumn, Span};
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{Attribute, Block, Expr, ExprBinary, ReturnType, Type};

use crate::changes::{is_test, operators, values};

/// A change of one place.
#[derive(Clone, Debug)]
pub struct Mutant {
    pub id: usize,
    pub file: String,
    pub line: usize,
    pub what: String,
}

/// A stretch of text and the branches that may take its place.
struct Place {
    range: Range<usize>,
    kind: Kind,
}

enum Kind {
    /// An expression and what it may be instead.
    Instead(Vec<(usize, String)>),
    /// Statements at the begin of a block.
    First(Vec<(usize, String)>),
    /// An arm of a match that may be left out.
    Arm(usize),
}

/// The text of a file with mutants, which are added to `mutants`. Lines in `without` get none: they do not compile.
pub fn instrument(file: &str, text: &str, without: &BTreeSet<usize>, mutants: &mut Vec<Mutant>) -> String {
    let parsed = syn::parse_file(text).unwrap_or_else(|error| panic!("{file}: {error}"));
    let starts: Vec<usize> =
        std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let mut finder = Finder { file, text, starts, without, mutants, places: Vec::new() };
    finder.visit_file(&parsed);
    let mut places = finder.places;
    places.sort_by_key(|place| (place.range.start, std::cmp::Reverse(place.range.end)));
    render(text, 0..text.len(), &mut places.iter().peekable())
}

/// The text of a range with the places in it.
fn render<'p>(
    text: &str,
    range: Range<usize>,
    places: &mut std::iter::Peekable<impl Iterator<Item = &'p Place>>,
) -> String {
    let (mut out, mut at) = (String::new(), range.start);
    while let Some(place) = places.next_if(|place| place.range.start < range.end) {
        out += &text[at..place.range.start];
        at = place.range.end;
        let inner = render(text, place.range.clone(), places);
        match &place.kind {
            Kind::Instead(branches) => {
                let branches: String = branches
                    .iter()
                    .map(|(id, new)| format!("if crate::mutant({id}) {{ {new} }} else "))
                    .collect();
                out += &format!("({branches}{{ {inner} }})");
            }
            Kind::First(branches) => {
                out += &branches
                    .iter()
                    .map(|(id, new)| format!("if crate::mutant({id}) {{ {new} }} "))
                    .collect::<String>();
            }
            Kind::Arm(id) => out += &format!(" if !crate::mutant({id})"),
        }
    }
    out + &text[at..range.end]
}

struct Finder<'a> {
    file: &'a str,
    text: &'a str,
    starts: Vec<usize>,
    without: &'a BTreeSet<usize>,
    mutants: &'a mut Vec<Mutant>,
    places: Vec<Place>,
}

impl Finder<'_> {
    fn offset(&self, at: LineColumn) -> usize {
        let start = self.starts[at.line - 1];
        let chars = self.text[start..].char_indices().map(|(at, _)| start + at).chain([self.text.len()]);
        chars.skip(at.column).next().unwrap_or(self.text.len())
    }

    fn range(&self, span: Span) -> Range<usize> {
        self.offset(span.start())..self.offset(span.end())
    }

    fn source(&self, span: Span) -> &str {
        &self.text[self.range(span)]
    }

    /// A number for a change of this line; none where changes do not compile.
    fn number(&mut self, span: Span, what: String) -> Option<usize> {
        let line = span.start().line;
        if self.without.contains(&line) {
            return None;
        }
        let id = self.mutants.len() + 1;
        self.mutants.push(Mutant { id, file: self.file.to_owned(), line, what });
        Some(id)
    }

    /// An expression that may be another one. Branches are one line each, so that lines keep their numbers.
    fn instead(&mut self, span: Span, news: Vec<(String, String)>) {
        let in_a_line = news.into_iter().filter(|(_, new)| !new.contains("//"));
        let branches: Vec<_> = in_a_line
            .filter_map(|(what, new)| Some((self.number(span, what)?, new.replace('\n', " "))))
            .collect();
        if !branches.is_empty() {
            self.places.push(Place { range: self.range(span), kind: Kind::Instead(branches) });
        }
    }

    /// What a function may give at once instead of what it computes.
    fn body(&mut self, name: &str, output: &ReturnType, block: &Block) {
        let values = match output {
            ReturnType::Default => vec![String::new()],
            ReturnType::Type(_, output) => values(output),
        };
        let at = self.offset(block.brace_token.span.open().end());
        let mut branches = Vec::new();
        for value in values {
            if let Some(id) = self.number(block.span(), format!("{name} gives ({value}) at once")) {
                branches.push((id, format!("return {value};")));
            }
        }
        if !branches.is_empty() {
            self.places.push(Place { range: at..at, kind: Kind::First(branches) });
        }
    }

    fn function(&mut self, attrs: &[Attribute], signature: &syn::Signature, block: &Block) {
        if is_test(attrs) || signature.constness.is_some() {
            return;
        }
        self.body(&signature.ident.to_string(), &signature.output, block);
        self.visit_block(block);
    }

    fn binary(&mut self, expr: &ExprBinary) {
        let others = operators(expr);
        let (left, right) = (self.source(expr.left.span()), self.source(expr.right.span()));
        let (op, is_assign) = (
            self.source(expr.op.span()).to_owned(),
            others.iter().any(|o| o.len() > 1 && o.ends_with('=') && !["<=", ">=", "==", "!="].contains(o)),
        );
        let news = others.iter().map(|new| {
            let text =
                if is_assign { format!("{left} {new} {right}") } else { format!("({left}) {new} ({right})") };
            (format!("{new} for {op}"), text)
        });
        self.instead(expr.span(), news.collect());
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.attrs, &item.sig, &item.block);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.attrs, &item.sig, &item.block);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        // Words for people are not what the tests are about.
        let is_words = item.trait_.as_ref().is_some_and(|(_, path, _)| {
            path.segments
                .last()
                .is_some_and(|last| ["Debug", "Display"].contains(&last.ident.to_string().as_str()))
        });
        if !is_words {
            syn::visit::visit_item_impl(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test(&item.attrs) {
            syn::visit::visit_item_mod(self, item);
        }
    }

    fn visit_expr(&mut self, expr: &'ast Expr) {
        match expr {
            Expr::Binary(binary) => self.binary(binary),
            Expr::Unary(unary)
                if !matches!(unary.op, syn::UnOp::Deref(_)) && !matches!(*unary.expr, Expr::Lit(_)) =>
            {
                let new = self.source(unary.expr.span()).to_owned();
                let what = format!("no {}", self.source(unary.op.span()));
                self.instead(unary.span(), vec![(what, new)]);
            }
            Expr::Match(whole) => {
                let has_rest =
                    whole.arms.iter().any(|arm| arm.guard.is_none() && matches!(arm.pat, syn::Pat::Wild(_)));
                for arm in whole.arms.iter().filter(|arm| !matches!(arm.pat, syn::Pat::Wild(_))) {
                    match &arm.guard {
                        Some((_, guard)) if !matches!(**guard, Expr::Let(_)) => {
                            let news = ["true", "false"].map(|v| (format!("guard {v}"), v.to_owned()));
                            self.instead(guard.span(), news.to_vec());
                        }
                        None if has_rest => {
                            let at = self.offset(arm.pat.span().end());
                            if let Some(id) = self.number(arm.pat.span(), "without this arm".to_owned()) {
                                self.places.push(Place { range: at..at, kind: Kind::Arm(id) });
                            }
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
        syn::visit::visit_expr(self, expr);
    }

    // What is constant cannot ask for the environment.
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_type(&mut self, _: &'ast Type) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_attribute(&mut self, _: &'ast Attribute) {}
    fn visit_expr_repeat(&mut self, expr: &'ast syn::ExprRepeat) {
        self.visit_expr(&expr.expr);
    }
}
