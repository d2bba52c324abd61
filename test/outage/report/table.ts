/** One promise and its result. */
export interface Finding {
  readonly isMet: boolean;
  readonly text: string;
}

/** The result of one cell: a finding for each column, and notes that explain it. */
export interface Row {
  readonly name: string;
  readonly findings: Readonly<Record<string, Finding>>;
  readonly notes: readonly string[];
}

export function isMet({ findings }: Row): boolean {
  return Object.values(findings).every((finding) => finding.isMet);
}

/** The lines of a row: its findings with failures marked, and its notes if it fails. */
export function rowLines(row: Row, nameWidth = usualNameWidth): readonly string[] {
  const cells = Object.values(row.findings).map(({ isMet: isGood, text }) =>
    `${isGood ? "  " : "! "}${text}`.padEnd(findingWidth),
  );
  const passes = isMet(row);
  const line = `${passes ? "PASS" : "FAIL"} ${row.name.padEnd(nameWidth)} ${cells.join(" ")}`;
  return [line.trimEnd(), ...(passes ? [] : row.notes.map((note) => `       ${note}`))];
}

export function headLine(columns: readonly string[], nameWidth = usualNameWidth): string {
  const cells = columns.map((column) => `  ${column}`.padEnd(findingWidth));
  return `     ${"cell".padEnd(nameWidth)} ${cells.join(" ")}`.trimEnd();
}

const usualNameWidth = 43;
const findingWidth = 27;

/** The number of rows that keep each column's promise, and all promises. */
export function summaryLines(rows: readonly Row[], columns: readonly string[]): readonly string[] {
  const lines = columns.map((column) => {
    const met = rows.filter(({ findings }) => findings[column]?.isMet === true).length;
    return `${met === rows.length ? "PASS" : "FAIL"} ${column}: ${met} of ${rows.length}`;
  });
  const met = rows.filter(isMet).length;
  return [...lines, `${met === rows.length ? "PASS" : "FAIL"} cells: ${met} of ${rows.length}`];
}

/** The row of a cell that could not be run. */
export function brokenRow(name: string, columns: readonly string[], error: unknown): Row {
  const finding = { isMet: false, text: "not run" };
  const findings = Object.fromEntries(columns.map((column) => [column, finding]));
  return { name, findings, notes: [error instanceof Error ? error.message : String(error)] };
}

/** The most frequent first. */
export function countLine(what: string, counts: Readonly<Record<string, number>>): string {
  const sorted = Object.entries(counts).toSorted(([, one], [, other]) => other - one);
  return `${what}: ${sorted.map(([name, count]) => `${count} x ${name}`).join(", ")}`;
}
