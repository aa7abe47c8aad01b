//! What may be seen, and what not.

use super::*;

impl Sim {
    pub(super) fn check_version(&mut self, a: usize, object: usize, version: u64) {
        let last = self.aps[a].versions.insert(object, version).unwrap_or(0);
        let text = format!("ap{a} saw version {version} of v{object} after {last}");
        self.must(version >= last, &text);
    }

    /// A number is of one variable.
    pub(super) fn check_number(&mut self, reply: &Reply) {
        if let Reply::Variable(variable) = reply {
            let name = variable.spec().name();
            let known = self.numbers.entry(variable.id());
            let known = known.or_insert_with(|| name.to_owned());
            let what = format!("{name} has the number of {known}");
            let same = known == name;
            self.must(same, &what);
        }
    }

    pub(super) fn granted(&mut self, a: usize, object: usize, epoch: u64) {
        let Kind::Locked {
            history,
            holder,
            epoch: last,
            ..
        } = &mut self.objects[object].kind
        else {
            return;
        };
        let doubtful = std::mem::take(&mut self.aps[a].doubtful);
        if doubtful {
            self.aps[a].holding = Some(Holding {
                object,
                epoch,
                working: [0; 4],
                wrote: None,
                zombie: true,
                entered: None,
            });
            return;
        }
        let other = holder.replace(a);
        let rising = epoch > std::mem::replace(last, epoch);
        let now = history.last().copied().unwrap_or(0);
        self.aps[a].holding = Some(Holding {
            object,
            epoch,
            working: [now; 4],
            wrote: None,
            zombie: false,
            entered: None,
        });
        self.must(
            other.is_none(),
            &format!("v{object} is held by {other:?} and ap{a}"),
        );
        self.must(rising, "an epoch did not rise");
    }

    pub(super) fn check_read(&mut self, a: usize, object: usize, floor: u64, data: &Bytes) {
        let values: Vec<u64> = data
            .chunks(8)
            .map(|c| number(&Bytes::copy_from_slice(c)))
            .collect();
        let seen = self.aps[a].seen.get(&object).copied().unwrap_or(0);
        let holding = self.aps[a].holding.as_ref().filter(|h| h.object == object);
        let what = format!("ap{a} read {values:?} of v{object} (floor {floor}, saw {seen})");
        let position = match &self.objects[object].kind {
            Kind::Locked {
                history, uncertain, ..
            } => {
                if let Some(h) = holding.filter(|h| !h.zombie) {
                    let working = h.working;
                    let own = values
                        .iter()
                        .zip(&working)
                        .all(|(v, w)| v == w || (*uncertain && Some(*w) != h.wrote));
                    return self.must(own, &format!("{what}, its section is {working:?}"));
                }
                if let Some(h) = holding {
                    // Lost or not: without what the section wrote, a read in it must fail.
                    let wrote = h.wrote;
                    let mut both = values.iter().zip(&h.working);
                    let own = both.all(|(v, w)| Some(*w) != wrote || v == w);
                    let what = format!("{what}, its section wrote {wrote:?}");
                    return self.must(own, &what);
                }
                let whole = values.iter().all(|v| *v == values[0]);
                let position = history.iter().position(|n| *n == values[0]);
                let uncertain = *uncertain;
                self.must(whole, &format!("{what}: a mixture"));
                self.must(position.is_some(), &format!("{what}: never released"));
                if uncertain {
                    return;
                }
                position.unwrap_or(0) as u64
            }
            Kind::Owned { issued, .. } | Kind::Counter { issued, .. } => {
                let issued = *issued;
                self.must(values[0] <= issued, &format!("{what}: never written"));
                values[0]
            }
        };
        let fell_back = self.objects[object].fell_back;
        self.must(position >= floor || fell_back, &format!("{what}: too old"));
        self.must(position >= seen, &format!("{what}: older than before"));
        self.aps[a].seen.insert(object, position);
    }
}
