import { appendFileSync } from "node:fs";

/** One promise as a test found it kept or not. */
export interface ScorecardLine {
  /** What tells this check from the others: its number, or a short word. */
  readonly check: number | string;
  readonly name: string;
  /** What was measured. */
  readonly value: number | string;
  /** What it is held against, with its unit and direction: `<= 50 ms`. */
  readonly limit: number | string;
  readonly isMet: boolean;
}

/**
 * Prints a line, and adds it as JSON to the file that SLUICE_SCORECARD names, from which
 * `scripts/scorecard.ts` makes its table. It asserts nothing: report first, so that a line that is
 * not met is on the card too, and expect then.
 */
export function report(line: ScorecardLine): void {
  const { name, value, limit, isMet } = line;
  const verdict = isMet ? "PASS" : "FAIL";
  process.stdout.write(`scorecard | ${name} | ${value} | ${limit} | ${verdict}\n`);
  const file = process.env["SLUICE_SCORECARD"];
  if (file !== undefined && file !== "") appendFileSync(file, `${JSON.stringify(line)}\n`);
}
