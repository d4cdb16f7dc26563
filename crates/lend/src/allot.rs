//! Who gets a server's slots.

use std::time::Duration;

use model::Moment;

/// How long the slots that are left over after an equal division stay with some before others have their turn.
pub(crate) const ROTATE: Duration = Duration::from_millis(200);

/// How many slots the other members and this one should have.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Division {
    /// In the order of their needs.
    pub(crate) others: Vec<u32>,
    /// What this member needs and gets; what is left over stays with it, too.
    pub(crate) own: u32,
}

/// Divides `total` slots by what each member needs. This member gets `first` of what it needs before the others;
/// the rest is divided so that none gets more than it needs while another needs more than it gets (max-min
/// fairness). What cannot be divided equally goes to some, and to others at another time.
pub(crate) fn divide(needs: &[u32], own: u32, first: u32, total: u32, now: Moment) -> Division {
    let first = first.min(own).min(total);
    let needs: Vec<u32> = needs.iter().copied().chain([own - first]).collect();
    let mut others = equally(&needs, total - first, now);
    let own = others.pop().unwrap_or_default();
    Division { others, own: own + first }
}

fn equally(needs: &[u32], total: u32, now: Moment) -> Vec<u32> {
    let mut given = vec![0; needs.len()];
    let mut left = total;
    loop {
        let open = needs.iter().zip(&given).enumerate().filter(|(_, (need, given))| need > given);
        let claims: Vec<usize> = open.map(|(at, _)| at).collect();
        let count = u32::try_from(claims.len()).unwrap_or(u32::MAX);
        if count == 0 || left == 0 {
            return given;
        }
        let each = left / count;
        if each == 0 {
            let turn = now.as_micros() / ROTATE.as_micros().max(1) as u64;
            let first = (turn.wrapping_mul(u64::from(left)) % u64::from(count)) as usize;
            let chosen = claims.iter().cycle().skip(first).take(left as usize);
            chosen.for_each(|at| given.get_mut(*at).into_iter().for_each(|slots| *slots += 1));
            return given;
        }
        for at in claims {
            if let (Some(slots), Some(need)) = (given.get_mut(at), needs.get(at)) {
                let more = each.min(need - *slots);
                *slots += more;
                left -= more;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_gets_what_it_needs_or_as_much_as_the_others() {
        let divided = |needs: &[u32], total| equally(needs, total, Moment::ZERO);
        assert_eq!(divided(&[1, 2, 0], 9), [1, 2, 0]);
        assert_eq!(divided(&[9, 9, 9], 9), [3, 3, 3]);
        assert_eq!(divided(&[1, 9, 9], 9), [1, 4, 4]);
        assert_eq!(divided(&[1, 2, 30, 30], 21), [1, 2, 9, 9]);
        assert_eq!(divided(&[], 3), Vec::<u32>::new());
        assert_eq!(divided(&[5, 5], 0), [0, 0]);
    }

    #[test]
    fn those_that_wait_have_their_turns() {
        let mut had = [0; 7];
        for turn in 0..700 {
            let now = Moment::ZERO + ROTATE * turn;
            let given = equally(&[3; 7], 4, now);
            assert_eq!(given.iter().sum::<u32>(), 4);
            had.iter_mut().zip(given).for_each(|(had, given)| *had += given);
        }
        assert_eq!(had, [400; 7]);
    }

    #[test]
    fn what_a_member_needs_of_its_own_may_come_first() {
        let divided = |own, first| divide(&[4, 4], own, first, 6, Moment::ZERO);
        assert_eq!(divided(3, 3), Division { others: vec![2, 1], own: 3 });
        assert_eq!(divided(3, 0), Division { others: vec![2, 2], own: 2 });
        assert_eq!(divided(9, 9), Division { others: vec![0, 0], own: 6 });
    }
}
