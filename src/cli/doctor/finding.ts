export interface Finding {
  /** `note`: neither good nor bad, for example that no gateway is running. */
  readonly state: "ok" | "note" | "warning" | "failed";
  /** What was checked, in one or two words. */
  readonly subject: string;
  readonly text: string;
  /** What to do about it. Set for warnings and failures. */
  readonly advice?: string | undefined;
}

export function findingsOn(subject: string) {
  const of = (state: Finding["state"]) => {
    return (text: string, advice?: string): Finding => ({ state, subject, text, advice });
  };
  return { ok: of("ok"), note: of("note"), warning: of("warning"), failed: of("failed") };
}

const lineWidth = 80;
const stateWidth = 9;
const subjectWidth = 16;
const indent = " ".repeat(stateWidth + subjectWidth);

export function formatFinding({ state, subject, text, advice }: Finding): string {
  const word = state === "failed" ? "FAILED" : state;
  const head = word.padEnd(stateWidth) + subject.padEnd(subjectWidth);
  const told = advice === undefined ? [text] : [text, `To do: ${advice}`];
  return head + told.map(wrap).join(`\n${indent}`);
}

/** Breaks lines at spaces; a longer word keeps its line. */
function wrap(text: string): string {
  const pattern = new RegExp(`(?=\\S)(.{1,${lineWidth - indent.length - 1}}|\\S+)(?:\\s+|$)`, "g");
  return [...text.matchAll(pattern)].map(([, line = ""]) => line.trimEnd()).join(`\n${indent}`);
}
