//! tmp
mod support;
use fhec_passes::*;
#[test]
fn show() {
    let mut g = support::nets::resnet(&[(4, 2), (8, 2)], 8, 2, support::nets::Shortcut::ZeroPad, 1);
    let m = Manager::new(pipeline(Config::ALL), ManagerOptions { compare: 2, ..Default::default() }).unwrap();
    println!("{}", fhec_ir::print(&g, fhec_ir::PrintOptions { tensors: false, origins: true }));
    let runs = m.run(&mut g, &mut PassCx::default()).unwrap();
    for r in runs {
        println!("{} {:?} {} {:?} {:?}", r.name, r.elapsed, r.depth, r.report.counters, r.report.log);
    }
    println!("{}", fhec_ir::print(&g, fhec_ir::PrintOptions { tensors: false, origins: true }));
}
