/** The tokens or requests admitted in one second of a window. */
export interface ChartSlot {
  /** Time since the second began, in milliseconds. */
  readonly ageMs: number;
  readonly amount: number;
}

/** The window's 60 seconds and the current one. */
const seconds = 61;
const rows = 6;
/** Columns of 0 to 8 eighths. */
const blocks = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"] as const;

/** Draws a column for each second, the oldest at the left. */
export function formatWindowChart(slots: readonly ChartSlot[]): string {
  const amounts = Array.from({ length: seconds }, () => 0);
  for (const { ageMs, amount } of slots) {
    const column = seconds - 1 - Math.min(Math.max(Math.floor(ageMs / 1000), 0), seconds - 1);
    amounts[column] = (amounts[column] ?? 0) + amount;
  }
  const highest = Math.max(...amounts);
  const eighths = amounts.map((amount) => heightOf(amount, highest));
  const label = String(Math.round(highest));
  const lines = Array.from({ length: rows }, (_, line) => {
    const floor = (rows - 1 - line) * 8;
    const columns = eighths.map((height) => blocks[Math.min(Math.max(height - floor, 0), 8)]);
    const axis = line === 0 ? label : line === rows - 1 ? "0" : "";
    return `  ${axis.padStart(label.length)} |${columns.join("")}`.trimEnd();
  });
  const indent = " ".repeat(label.length + 3);
  const scale = `${indent}+${"-".repeat(seconds)}`;
  const [left, right] = ["60 s before", "the refusal"];
  const caption = `${indent} ${left}${right.padStart(seconds - left.length)}`;
  return [...lines, scale, caption].join("\n");
}

/** At least one eighth for a second that is not empty. */
function heightOf(amount: number, highest: number): number {
  if (amount <= 0) return 0;
  return Math.max(Math.round((amount / highest) * rows * 8), 1);
}
