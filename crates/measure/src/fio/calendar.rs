//! Formats a date and time as in fio's output.

const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Days from 1 March to the next 1 March.
const YEAR_DAYS: u64 = 365;
const FOUR_YEARS_DAYS: u64 = 4 * YEAR_DAYS + 1;
const CENTURY_DAYS: u64 = 25 * FOUR_YEARS_DAYS - 1;
const ERA_DAYS: u64 = 4 * CENTURY_DAYS + 1;
/// Days from 1 March of the year 0 to 1 January 1970.
const DAYS_BEFORE_1970: u64 = 719_468;

/// The time `seconds` after the beginning of 1970, in UTC: `Fri Nov 20 16:57:40 2026`.
pub(super) fn time_text(seconds: u64) -> String {
    let (days, second_of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
    let weekday = WEEKDAYS[(days % 7) as usize];
    // As C's %e: the day is padded with a blank.
    format!("{weekday} {} {day:>2} {hour:02}:{minute:02}:{second:02} {year}", MONTHS[month])
}

/// Year, month from 0 and day from 1. The calculation starts years in March, so that a leap day is the last day of a year.
fn date(days_since_1970: u64) -> (u64, usize, u64) {
    let days = days_since_1970 + DAYS_BEFORE_1970;
    let (era, day_of_era) = (days / ERA_DAYS, days % ERA_DAYS);
    // The last day of a fourth century or of a fourth year is its leap day, not the first day of the next one.
    let century = (day_of_era / CENTURY_DAYS).min(3);
    let day_of_century = day_of_era - century * CENTURY_DAYS;
    let (four_years, day_of_four_years) = (day_of_century / FOUR_YEARS_DAYS, day_of_century % FOUR_YEARS_DAYS);
    let year_of_four = (day_of_four_years / YEAR_DAYS).min(3);
    let day_of_year = day_of_four_years - year_of_four * YEAR_DAYS;
    // March to July, August to December, and January on follow the same pattern of 153 days per five months.
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let year = 400 * era + 100 * century + 4 * four_years + year_of_four;
    let (month, year) =
        if month_from_march < 10 { (month_from_march + 2, year) } else { (month_from_march - 10, year + 1) };
    (year, month as usize, day)
}

#[cfg(test)]
mod tests {
    use super::time_text;

    #[test]
    fn times_read_as_those_of_fio() {
        assert_eq!(time_text(0), "Thu Jan  1 00:00:00 1970");
        assert_eq!(time_text(1_795_193_860), "Fri Nov 20 16:57:40 2026");
        assert_eq!(time_text(951_782_400), "Tue Feb 29 00:00:00 2000");
        assert_eq!(time_text(951_868_799), "Tue Feb 29 23:59:59 2000");
        assert_eq!(time_text(1_709_251_200), "Fri Mar  1 00:00:00 2024");
        assert_eq!(time_text(4_107_542_400), "Mon Mar  1 00:00:00 2100");
    }
}
