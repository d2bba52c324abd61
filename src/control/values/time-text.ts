/** A time of an entity as the API writes it: ISO 8601 in UTC, null for what has not happened. */
export function timeText(time: number): string;
export function timeText(time: number | undefined): string | null;
export function timeText(time: number | undefined): string | null {
  return time === undefined ? null : new Date(time).toISOString();
}
