//! The family as data, the constructors, and one rejecting test per rule.

use super::*;

fn layout(packing: Packing, shape: [u32; 3], slots: u32) -> Layout {
    Layout::fresh(packing, Shape::new(shape[0], shape[1], shape[2]), 1, slots).unwrap()
}

fn after(layout: &Layout, packing: Packing, shape: [u32; 3], stride: u32) -> Layout {
    layout.after(packing, Shape::new(shape[0], shape[1], shape[2]), [stride; 2]).unwrap().0
}

#[test]
fn residual_network_stages_fit_one_ciphertext_with_growing_replication() {
    let one = layout(Packing::Packed, [16, 32, 32], 16384);
    let two = after(&one, Packing::Packed, [32, 16, 16], 2);
    let three = after(&two, Packing::Packed, [64, 8, 8], 2);
    assert_eq!([&one, &two, &three].map(|l| (l.n_cts(), l.period())), [(1, 16384), (1, 8192), (1, 4096)]);
    assert_eq!(three.spec().phases, [4, 4]);
    assert_eq!(three.slot(0, 63, 7, 7), (0, 3 * 1024 + 31 * 32 + 31));
}

#[test]
fn hw_keeps_gaps_empty() {
    let one = layout(Packing::Hw, [16, 28, 28], 8192);
    let two = after(&one, Packing::Hw, [20, 14, 14], 2);
    assert_eq!(two.slot(0, 3, 1, 2), (3, 2 * 28 + 4));
    assert_eq!((two.n_cts(), two.period()), (20, 1024));
    assert_eq!(two.spare_slots(), 20 * (8192 - 196));
}

#[test]
fn wide_tensor_is_split_over_ciphertexts() {
    let wide = layout(Packing::Packed, [100, 32, 32], 16384);
    assert_eq!((wide.n_cts(), wide.period()), (7, 16384));
    assert_eq!(wide.slot(0, 99, 0, 0), (6, 3 * 1024));
}

#[test]
fn grid_is_renewed_when_the_result_outgrows_it() {
    let one = layout(Packing::Packed, [4, 8, 8], 1024);
    let (grown, derived) = one.after(Packing::Packed, Shape::new(4, 10, 10), [1, 1]).unwrap();
    assert_eq!((derived, grown.spec().row_stride), (Derived::Fresh, 16));
}

#[test]
fn vector_is_dense_and_replicated() {
    let logits = Layout::vector(Packing::Packed, 10, 1, 16384).unwrap();
    assert_eq!((logits.period(), logits.slot(0, 9, 0, 0)), (16, (0, 9)));
}

#[test]
fn members_have_blocks_of_their_own() {
    let shape = Shape::new(3, 32, 32);
    let ensemble = Layout::fresh(Packing::Hw, shape, 4, 16384).unwrap();
    assert_eq!((ensemble.slot(3, 2, 0, 1), ensemble.period()), ((2, 3 * 1024 + 1), 4096));
    let single = ensemble.single_member().unwrap();
    assert_eq!((single.members(), single.period()), (1, 1024));
    let crowd = Layout::fresh(Packing::Hw, shape, 32, 16384);
    assert_eq!(
        crowd,
        Err(LayoutError::TooLarge { shape, members: 32, needed: 32768, slots: 16384, fit: 16 })
    );
}

#[test]
fn map_is_injective_and_gather_inverts_scatter() {
    let cases = [
        layout(Packing::Packed, [16, 32, 32], 16384),
        after(&layout(Packing::Packed, [16, 28, 28], 8192), Packing::Packed, [20, 14, 14], 2),
        after(&layout(Packing::Hw, [2, 9, 7], 512), Packing::Hw, [3, 5, 4], 2),
        Layout::fresh(Packing::Packed, Shape::new(5, 3, 3), 3, 512).unwrap(),
    ];
    for layout in cases {
        let tensor: Vec<f64> = (1..=layout.members() * layout.shape().len()).map(|v| v as f64).collect();
        let cts = layout.scatter(&tensor);
        assert_eq!(layout.gather(&cts), tensor, "{layout:?}");
        let stored = cts.iter().flatten().filter(|&&v| v != 0.0).count();
        assert_eq!(stored, tensor.len() * layout.slots() / layout.period());
    }
}

#[test]
fn overlapping_or_oversized_layouts_are_refused() {
    let good = layout(Packing::Packed, [16, 8, 8], 1024).spec().clone();
    let check = |change: &dyn Fn(&mut LayoutSpec), message: &str| {
        let mut spec = good.clone();
        change(&mut spec);
        assert_eq!(Layout::new(spec).unwrap_err().to_string(), message);
    };
    check(&|s| s.row_stride = 7, "layout row needs 8 slots but row_stride leaves 7");
    check(&|s| s.block_stride = 63, "layout block needs 64 slots but block_stride leaves 63");
    check(&|s| s.blocks = 17, "layout tensor needs 1088 slots but period leaves 1024");
    check(&|s| s.members = 2, "layout tensor needs 2048 slots but period leaves 1024");
    check(&|s| s.phases = [1, 2], "layout field phases is zero or too large");
    check(&|s| s.gap = [0, 1], "layout field gap is zero or too large");
    check(&|s| s.period = 1000, "layout field period is zero or too large");
    check(&|s| s.slots = 1 << 20, "layout field slots is zero or too large");
    check(&|s| s.shape.channels = u32::MAX, "layout field shape is zero or too large");
    check(&|s| s.member_stride = 0, "layout field stride is zero or too large");
}
