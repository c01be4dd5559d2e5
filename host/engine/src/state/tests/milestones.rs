//! What is announced of tasks. `histories` compares milestones with the states before and after random inputs.

use super::*;

fn kinds(world: &mut World) -> Vec<Option<TaskMilestone>> {
    let milestones = std::mem::take(&mut world.milestones);
    let kinds = milestones.into_iter().map(|milestone| match milestone {
        Milestone::Task(kind, _) => Some(kind),
        Milestone::QueueDrained(_) => None,
    });
    kinds.collect()
}

#[test]
fn a_download_is_announced_from_its_creation_to_the_drained_queue() {
    use TaskMilestone::{Completed, Created, MetaProbed, Started};
    let mut world = World::new();
    let task = world.create(1);
    assert_eq!(kinds(&mut world), [Some(Created), Some(Started)]);
    let reserve = |world: &World| Input::Reserved(task, world.run(task), "/downloads/a".into(), Some(10));
    let reserved = reserve(&world);
    world.apply(reserved).unwrap();
    assert_eq!(kinds(&mut world), [Some(MetaProbed)]);
    // A retry is no start, and knows the name already.
    world.end(task, failed(FailureKind::Network));
    world.now = world.now.after(Duration::from_hours(1));
    world.clock("2026-11-21T12:00:00");
    let reserved = reserve(&world);
    world.apply(reserved).unwrap();
    assert_eq!(kinds(&mut world), []);
    world.end(task, finished("/downloads/a"));
    assert_eq!(kinds(&mut world), [Some(Completed), None]);
}

#[test]
fn a_pause_is_announced_when_its_run_has_ended_and_drains_no_queue() {
    use TaskMilestone::{Cancelled, Failed, Paused};
    let mut world = World::new();
    let (one, other) = (world.create(1), world.create(2));
    kinds(&mut world);
    world.command(Command::Pause(one)).unwrap();
    assert_eq!(kinds(&mut world), []);
    world.end(one, Outcome::Stopped);
    assert_eq!(kinds(&mut world), [Some(Paused)]);
    world.end(other, failed(FailureKind::NotFound));
    assert_eq!(kinds(&mut world), [Some(Failed), None]);
    // What has failed was announced; what was paused will never be complete.
    world
        .command(Command::DeleteMany(vec![one, other], FileFate::Keep))
        .unwrap();
    assert_eq!(kinds(&mut world), [Some(Cancelled)]);
}
