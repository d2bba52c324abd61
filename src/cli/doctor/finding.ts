/** What one check found. */
export interface Finding {
  readonly state: FindingState;
  /** What was checked, in one or two words. */
  readonly subject: string;
  readonly text: string;
  /** What to do about it. Set for warnings and failures. */
  readonly advice?: string | undefined;
}

/** `note`: neither good nor bad, for example that no gateway is running. */
export type FindingState = "ok" | "note" | "warning" | "failed";

const lineWidth = 80;
const stateWidth = 9;
const subjectWidth = 16;
const indent = " ".repeat(stateWidth + subjectWidth);

export function formatFinding({ state, subject, text, advice }: Finding): string {
  const word = state === "failed" ? "FAILED" : state;
  const head = word.padEnd(stateWidth) + subject.padEnd(subjectWidth);
  const lines = wrap(text, lineWidth - indent.length);
  const told = advice === undefined ? [] : wrap(`To do: ${advice}`, lineWidth - indent.length);
  const [first = "", ...rest] = [...lines, ...told];
  return [`${head}${first}`, ...rest.map((line) => `${indent}${line}`)].join("\n");
}

/** Breaks lines at spaces to at most `width` columns; a longer word keeps its line. */
function wrap(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/\s+/)) {
    if (line !== "" && line.length + word.length >= width) {
      lines.push(line);
      line = "";
    }
    line += line === "" ? word : ` ${word}`;
  }
  return [...lines, line];
}
