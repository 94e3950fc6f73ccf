//! A script's histograms.

use crate::cli::Histogram;

use crate::places::Places;

/// A histogram, as scripts hold its address.
pub(crate) struct HistogramSlot(Option<Histogram>);

/// The histograms of a client. Their places are not freed before the client ends. An interpreter that is closed
/// collects everything in any order, and a `__gc` of the script may count in a histogram that was collected before.
#[derive(Default)]
pub(crate) struct Histograms {
    places: Places<HistogramSlot>,
    /// Those that the script has let go of.
    spare: Vec<*mut HistogramSlot>,
}

impl Histograms {
    /// Makes one, as `sysbench.histogram.new` does.
    pub(crate) fn make(&mut self, size: usize, least: f64, most: f64) -> *mut HistogramSlot {
        let place = self.spare.pop().unwrap_or_else(|| self.places.put(HistogramSlot(None)));
        // SAFETY: it is one of the places, and has no other user.
        unsafe { (*place).0 = Some(Histogram::new(size, least, most)) };
        place
    }

    /// Frees the memory of a histogram; its place can be reused.
    ///
    /// # Safety
    /// The place is one of these.
    pub(crate) unsafe fn let_go(&mut self, place: *mut HistogramSlot) {
        // SAFETY: as above. A histogram released before is among the spare ones already.
        if unsafe { (*place).0.take() }.is_some() {
            self.spare.push(place);
        }
    }
}

impl HistogramSlot {
    /// Counts a value, unless the histogram was released.
    pub(crate) fn record(&mut self, value: f64) {
        if let Some(histogram) = &mut self.0 {
            histogram.record(value);
        }
    }

    /// As sysbench prints it.
    pub(crate) fn text(&self) -> String {
        self.0.as_ref().map(Histogram::text).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn released_histogram_slot_counts_nothing_until_reused() {
        let mut histograms = Histograms::default();
        let first = histograms.make(10, 1.0, 100.0);
        // SAFETY: places are there for as long as the histograms.
        unsafe {
            (*first).record(5.0);
            assert!((*first).text().contains('*'));
            histograms.let_go(first);
            histograms.let_go(first);
            (*first).record(5.0);
            assert_eq!((*first).text(), "");
            let (second, third) = (histograms.make(10, 1.0, 100.0), histograms.make(10, 1.0, 100.0));
            assert!(second == first && third != first);
            assert_eq!((*second).text(), "", "nothing of the other is in it");
        }
    }
}
