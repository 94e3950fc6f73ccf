//! The transactions over SQL with combined lookups (*batched*). One statement handles all items of an order, all rows
//! of stock, all lines, or a delivery's work in ten districts. The work on rows is the same except for rolled-back
//! orders; the round trips are a third.

use rumba_engine_api::error::Result;
use rumba_engine_api::sql::Param;

use super::bought::Bought;
use super::several::Several;
use super::store::SqlStore;
use super::text::Sql;
use super::waiting::Waiting;
use crate::draw::{Delivery, NewOrder};
use crate::scale::DISTRICTS;
use crate::stop::Point;
use crate::store::Delivered;

impl SqlStore {
    /// The lines of an order, together with the rest of it.
    pub(super) async fn lines_at_once(
        &mut self,
        order: &NewOrder,
        key: [Param<'static>; 3],
    ) -> Result<Option<(i64, u32)>> {
        let mut bought = Bought::new(order, self.dialect);
        let started = self.start_one(Several::Items, &bought.items())?;
        self.finish(started, &mut |_, row| bought.read_item(row)).await?;
        if !bought.all_exist()? {
            return Ok(None);
        }
        self.stops.again(Point::Price, bought.first_price());
        let started = self.start_one(Several::Stock(order.district), &bought.places())?;
        self.finish(started, &mut |_, row| bought.read_stock(row)).await?;
        let taken = bought.take()?;
        for (line, left) in order.lines().iter().zip(taken.left) {
            self.take_stock(order, line, left).await?;
        }
        let started = self.start_one(Several::Lines(order.lines().len()), bought.lines(key, &taken).of(order))?;
        self.finish(started, &mut |_, _| {}).await?;
        Ok(Some((taken.cents, taken.original)))
    }

    /// A delivery: finds the oldest orders one by one, then updates them all at once.
    pub(super) async fn deliver_at_once(&mut self, delivery: &Delivery) -> Result<Delivered> {
        let mut waiting = Waiting::new(delivery, self.dialect);
        for district in 1..=DISTRICTS {
            waiting.put(district, self.oldest(delivery, district).await?);
        }
        if waiting.count == 0 {
            return Ok(Delivered::default());
        }
        let started = self.start_one(Several::Delete, &waiting.keys())?;
        waiting.all_deleted(self.finish(started, &mut |_, _| {}).await?.affected)?;
        let started = self.start_one(Several::Customers, &waiting.keys())?;
        self.finish(started, &mut |_, row| waiting.read_customer(row)).await?;
        let started = self.start_one(Several::DeliverOrders, &waiting.keys_behind(waiting.carrier()))?;
        self.finish(started, &mut |_, _| {}).await?;
        let started = self.start_one(Several::DeliverLines, &waiting.keys_behind(waiting.time()))?;
        self.finish(started, &mut |_, _| {}).await?;
        let started = self.start_one(Several::Amounts, &waiting.keys())?;
        self.finish(started, &mut |_, row| waiting.read_amount(row)).await?;
        for values in &waiting.payments()?[..waiting.count] {
            self.change(Sql::PayFromOrder, values).await?;
        }
        Ok(waiting.delivered())
    }
}
