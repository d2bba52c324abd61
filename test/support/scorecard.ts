import { appendFileSync } from "node:fs";

/** The result of a test for one promise. */
export interface ScorecardLine {
  /** The check's number or a short word, unique within the promise. */
  readonly check: number | string;
  readonly name: string;
  /** What was measured. */
  readonly value: number | string;
  /** The required value, with its unit and direction: `<= 50 ms`. */
  readonly limit: number | string;
  readonly isMet: boolean;
}

/**
 * Prints a line, and adds it as JSON to the file that SLUICE_SCORECARD names, from which
 * `scripts/scorecard.ts` makes its table. It asserts nothing: report before `expect`, so that a
 * line that is not met is on the card too.
 */
export function report(line: ScorecardLine): void {
  const { name, value, limit, isMet } = line;
  const verdict = isMet ? "PASS" : "FAIL";
  process.stdout.write(`scorecard | ${name} | ${value} | ${limit} | ${verdict}\n`);
  const file = process.env["SLUICE_SCORECARD"];
  if (file !== undefined && file !== "") appendFileSync(file, `${JSON.stringify(line)}\n`);
}
