//! The directories of groups.

use super::{
    resolving::{claimed, file, list},
    *,
};
use crate::model::group::GroupSpec;

/// Where a group `shelf n` may be, without the first ones in which the disk has files.
fn places(n: u8, on_disk: usize) -> Vec<PathBuf> {
    let name = FileName::sanitise(&format!("Shelf {n}"));
    let names = name
        .directories()
        .map(|name| Path::new("/downloads").join(name.as_str()));
    names.skip(on_disk).take(40).collect()
}

#[derive(Debug, Clone)]
enum Step {
    /// A group of two tasks, made by a command.
    Make(u8),
    /// One that a list becomes.
    List(u8),
    /// A download reserves a place.
    Reserve(u8, usize),
    /// The oldest group goes.
    Delete,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..3_u8).prop_map(Step::Make),
        (0..3_u8).prop_map(Step::List),
        (0..3_u8, 0..4_usize).prop_map(|(name, place)| Step::Reserve(name, place)),
        Just(Step::Delete),
    ];
    prop::collection::vec(step, 1..16)
}

impl World {
    fn step_of_groups(&mut self, at: u8, step: &Step, on_disk: usize) {
        let (one, other) = (100 + 2 * at, 101 + 2 * at);
        match *step {
            Step::Make(name) => {
                let wanted = places(name, 0).remove(0);
                let task = |n, below: &str| {
                    let save_dir = Some(wanted.join(below));
                    (id(n), TaskSpec { save_dir, ..spec(n) })
                };
                let tasks = vec![task(one, ""), task(other, "deep")];
                let group = GroupSpec {
                    save_dir: Some(wanted.clone()),
                    ..GroupSpec::default()
                };
                let places = places(name, on_disk);
                let create = Command::GroupCreate(GroupId::random(), Box::new(group), tasks, places);
                self.command(create).unwrap();
                let group = self.state.task(id(one)).unwrap().group.unwrap();
                let directory = self
                    .state
                    .groups
                    .get(group)
                    .unwrap()
                    .group
                    .spec
                    .save_dir
                    .clone()
                    .unwrap();
                assert_eq!(*self.state.task(id(one)).unwrap().save_dir, *directory);
                assert_eq!(*self.state.task(id(other)).unwrap().save_dir, directory.join("deep"));
            }
            Step::List(name) => {
                claimed(self, one);
                let asked = self
                    .questions
                    .iter()
                    .position(|question| question.task == id(one))
                    .unwrap();
                let asked = self.questions.remove(asked);
                let files = list(vec![file("a", 1), file("b", 2)]);
                let places = places(name, on_disk);
                self.apply(Input::Resolved(asked.task, asked.run, Ok(files), places))
                    .unwrap();
                let task = self.state.task(id(one)).unwrap();
                let group = &self.state.groups.get(task.group.unwrap()).unwrap().group;
                assert_eq!(*task.save_dir, group.spec.save_dir.clone().unwrap().join("part"));
            }
            Step::Reserve(name, place) => {
                let task = self.create(one);
                let path = places(name, 0).remove(place);
                let _taken = self.apply(Input::Reserved(task, self.run(task), path, None));
            }
            Step::Delete => {
                let Some(group) = self.state.groups.iter().next().map(|members| members.group.id) else {
                    return;
                };
                self.command(Command::GroupDelete(group, FileFate::Keep)).unwrap();
            }
        }
    }
}

proptest! {
    #[test]
    fn no_two_groups_and_no_download_have_one_place(steps in steps(), on_disk in 0..3_usize) {
        let mut world = World::new();
        world.settings(|settings| settings.max_concurrent_tasks = 1000);
        for (at, step) in steps.iter().enumerate() {
            world.step_of_groups(u8::try_from(at).unwrap(), step, on_disk);
            let groups = world.state.groups.iter();
            let mut taken: Vec<_> = groups.map(|members| members.group.spec.save_dir.clone().unwrap()).collect();
            prop_assert!((0..3).all(|name| places(name, 0)[..on_disk].iter().all(|file| !taken.contains(file))));
            let tasks = world.state.tasks.values();
            taken.extend(tasks.filter_map(|task| task.path.as_deref().map(Path::to_owned)));
            let all = taken.len();
            taken.sort();
            taken.dedup();
            prop_assert_eq!(taken.len(), all);
        }
        let again = world.killed();
        prop_assert_eq!(&again.state.groups, &world.state.groups, "what was decided stays");
    }
}

#[test]
fn without_a_free_place_groups_share_one() {
    let mut world = World::new();
    for (n, expected) in [
        (1, "/downloads/Shelf 0"),
        (3, "/downloads/Shelf 0 (1)"),
        (5, "/downloads/Shelf 0"),
    ] {
        let group = GroupSpec {
            save_dir: Some("/downloads/Shelf 0".into()),
            ..GroupSpec::default()
        };
        let places = places(0, 0)[..2].to_vec();
        let create = Command::GroupCreate(GroupId::random(), Box::new(group), vec![(id(n), spec(n))], places);
        world.command(create).unwrap();
        assert_eq!(*world.state.task(id(n)).unwrap().save_dir, *Path::new(expected));
    }
}
