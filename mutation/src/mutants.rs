//! Where a source file may be changed, and how.

use std::ops::Range;

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, BinOp, Block, Expr, ReturnType, Signature, Stmt, Type, UnOp};

/// A place and all that may stand there instead: in the program they are branches, of which a number chooses one.
pub struct Site {
    /// Bytes of the original text.
    pub range: Range<usize>,
    pub kind: Kind,
    pub line: usize,
    /// What it is replaced by, as code; and as told.
    pub instead: Vec<(String, String)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An expression that becomes another.
    Expression,
    /// A statement that is left out.
    Statement,
    /// The beginning of a body, from where it returns at once.
    Body,
}

/// All places of a file. What is compiled for tests only, what is evaluated by the compiler and what stands in macros stays.
pub fn sites(text: &str) -> syn::Result<Vec<Site>> {
    let file = syn::parse_file(text)?;
    let mut finder = Finder { text, sites: Vec::new() };
    finder.visit_file(&file);
    Ok(finder.sites)
}

struct Finder<'t> {
    text: &'t str,
    sites: Vec<Site>,
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string().contains("test"),
        meta => meta.path().is_ident("test"),
    })
}

/// What stands for an operator. A comparison is turned around, and moved by one where it has a bound.
fn instead_of(op: &BinOp) -> &'static [&'static str] {
    match op {
        BinOp::Add(_) => &["-"],
        BinOp::Sub(_) | BinOp::Div(_) => &["+", "*"],
        BinOp::Mul(_) => &["+", "/"],
        BinOp::Rem(_) => &["/"],
        BinOp::And(_) => &["||"],
        BinOp::Or(_) => &["&&"],
        BinOp::BitXor(_) | BinOp::BitOr(_) => &["&"],
        BinOp::BitAnd(_) => &["|"],
        BinOp::Shl(_) => &[">>"],
        BinOp::Shr(_) => &["<<"],
        BinOp::Eq(_) => &["!="],
        BinOp::Ne(_) => &["=="],
        BinOp::Lt(_) => &["<=", ">="],
        BinOp::Le(_) => &["<", ">"],
        BinOp::Gt(_) => &[">=", "<="],
        BinOp::Ge(_) => &[">", "<"],
        BinOp::AddAssign(_) => &["-="],
        BinOp::SubAssign(_) => &["+="],
        BinOp::MulAssign(_) => &["/="],
        BinOp::DivAssign(_) => &["*="],
        BinOp::BitOrAssign(_) | BinOp::BitXorAssign(_) => &["&="],
        BinOp::BitAndAssign(_) => &["|="],
        BinOp::ShlAssign(_) => &[">>="],
        BinOp::ShrAssign(_) => &["<<="],
        _ => &[],
    }
}

/// `if let` within a chain of conditions is no expression that could stand elsewhere.
fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        Expr::Paren(paren) => has_let(&paren.expr),
        _ => false,
    }
}

impl Finder<'_> {
    fn at(&mut self, span: Span, kind: Kind, instead: Vec<(String, String)>) {
        if !instead.is_empty() {
            self.sites.push(Site { range: span.byte_range(), kind, line: span.start().line, instead });
        }
    }

    fn text_of(&self, of: &impl Spanned) -> &str {
        &self.text[of.span().byte_range()]
    }

    fn body(&mut self, signature: &Signature, block: &Block) {
        let values: &[&str] = match &signature.output {
            ReturnType::Default => &[""],
            ReturnType::Type(_, of) => match &**of {
                Type::Path(path) => match path.path.segments.last().map(|last| last.ident.to_string()).as_deref() {
                    Some("bool") => &["true", "false"],
                    Some("Option") => &["None"],
                    Some("u8" | "u16" | "u32" | "u64" | "usize" | "i32" | "i64") => &["0", "1"],
                    Some("f64") => &["0.0", "1.0"],
                    _ => &[],
                },
                _ => &[],
            },
        };
        // What does nothing cannot be changed by returning before it, and what returns just that neither.
        let told = self.text_of(block).trim_matches(['{', '}']).trim().to_owned();
        let values = values.iter().filter(|&&value| !block.stmts.is_empty() && told != value);
        let name = &signature.ident;
        let instead = values.map(|value| (format!("return {value}"), format!("{name} returns {value}"))).collect();
        self.at(block.brace_token.span.open(), Kind::Body, instead);
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let is_debug =
            item.trait_.as_ref().is_some_and(|of| of.0.segments.last().is_some_and(|last| last.ident == "Debug"));
        if !is_for_tests(&item.attrs) && !is_debug {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_for_tests(&item.attrs) && item.sig.constness.is_none() {
            self.body(&item.sig, &item.block);
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_for_tests(&item.attrs) && item.sig.constness.is_none() {
            self.body(&item.sig, &item.block);
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.body(&item.sig, block);
            visit::visit_trait_item_fn(self, item);
        }
    }

    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_item_enum(&mut self, _: &'ast syn::ItemEnum) {}
    fn visit_type(&mut self, _: &'ast Type) {}
    fn visit_generic_argument(&mut self, _: &'ast syn::GenericArgument) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_attribute(&mut self, _: &'ast Attribute) {}

    fn visit_expr_repeat(&mut self, expr: &'ast syn::ExprRepeat) {
        self.visit_expr(&expr.expr);
    }

    fn visit_stmt(&mut self, stmt: &'ast Stmt) {
        if let Stmt::Expr(Expr::Call(_) | Expr::MethodCall(_), Some(_)) = stmt {
            let told = format!("without {}", self.text_of(stmt));
            self.at(stmt.span(), Kind::Statement, vec![(String::new(), told)]);
        }
        visit::visit_stmt(self, stmt);
    }

    fn visit_expr_binary(&mut self, expr: &'ast syn::ExprBinary) {
        if !has_let(&expr.left) && !has_let(&expr.right) {
            let (left, right, op) = (self.text_of(&expr.left), self.text_of(&expr.right), self.text_of(&expr.op));
            let instead = instead_of(&expr.op);
            let instead = instead.iter().map(|new| {
                let code = format!("({left}) {new} ({right})");
                // An assignment's left side stands without brackets.
                let code = if new.ends_with("=") && op.len() > 1 && !matches!(*new, "==" | "!=" | "<=" | ">=") {
                    format!("{left} {new} ({right})")
                } else {
                    code
                };
                (code, format!("{new} for {op} in {left} {op} {right}"))
            });
            let instead = instead.collect();
            self.at(expr.span(), Kind::Expression, instead);
        }
        visit::visit_expr_binary(self, expr);
    }

    fn visit_expr_unary(&mut self, expr: &'ast syn::ExprUnary) {
        if matches!(expr.op, UnOp::Not(_)) {
            let inner = self.text_of(&expr.expr).to_owned();
            self.at(expr.span(), Kind::Expression, vec![(inner.clone(), format!("{inner} for !{inner}"))]);
        }
        visit::visit_expr_unary(self, expr);
    }
}
