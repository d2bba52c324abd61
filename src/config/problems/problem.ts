import type { ConfigPath, SettingProblem } from "../../settings/values.ts";

export interface ConfigProblem extends Omit<SettingProblem, "path"> {
  /** Key at fault, such as `environments[0].hosts`; empty for the whole file. */
  readonly path: string;
  /** From 1; undefined when the file has no such key. */
  readonly line?: number;
  readonly column?: number;
}

/** All problems in one text: a headline with the count, then one line each, by position. */
export function formatProblems(name: string, problems: readonly ConfigProblem[]): string {
  const count = problems.length === 1 ? "1 problem" : `${problems.length} problems`;
  const lines = problems.toSorted(comparePositions).map((problem) => formatProblem(name, problem));
  return [`${name}: ${count}`, ...lines].join("\n");
}

/**
 * Keys with a dot are quoted. A key is cut at the first character that no name contains, because a
 * missing space can join a secret to its key.
 */
export function formatPath(path: ConfigPath): string {
  let text = "";
  for (const step of path) {
    if (typeof step === "number") text += `[${step}]`;
    else text += text === "" ? formatKey(step) : `.${formatKey(step)}`;
  }
  return text;
}

function formatKey(key: string): string {
  const [name = ""] = /^[A-Za-z0-9._-]{0,64}/.exec(key) ?? [];
  if (name.length < key.length) return `"${name}..."`;
  return name === "" || name.includes(".") ? `"${name}"` : name;
}

function formatProblem(name: string, problem: ConfigProblem): string {
  const position =
    problem.line === undefined ? name : `${name}:${problem.line}:${problem.column ?? 1}`;
  const subject = problem.path === "" ? `${position}:` : `${position} ${problem.path}:`;
  const hint = problem.suggestion === undefined ? "" : `; did you mean '${problem.suggestion}'?`;
  return `${subject} ${problem.message}${hint}`;
}

function comparePositions(one: ConfigProblem, other: ConfigProblem): number {
  return (one.line ?? 0) - (other.line ?? 0) || (one.column ?? 0) - (other.column ?? 0);
}
