import type { UsageRecord } from "../../src/domain/usage/usage.ts";
import { errorBodyProblem, errorShapeProblem } from "../http/error-shape.ts";
import { parseStream } from "./bodies.ts";
import { hasHole } from "./has-hole.ts";
import { words, type Cell, type SeenCall } from "./fault-matrix-bench.ts";
import { attemptLimit, type Outcome } from "./fault-matrix-table.ts";

/** What is expected of one call, after every target had its chance. */
interface Expected {
  readonly outcome: Exclude<Outcome, "broken or unavailable">;
  readonly attempts: number;
  readonly servedBy: "first" | "second";
}

/** One call of a cell: which of its calls it is, and what it should be without another target. */
export interface ListedCall {
  readonly cell: Cell;
  readonly index: number;
  readonly outcome: Outcome;
}

/** What is wrong with a call; nothing, when it is exactly what its cell says. */
export function problemsOf(listed: ListedCall, seen: SeenCall): readonly string[] {
  if (seen.isHung) return ["it hung"];
  const { cell } = listed;
  const expected = expectedOf(listed, seen);
  const answered = cell.isStreamed ? readStream(seen) : readPlain(seen);
  const problems = [
    ...differences("answer", answered, expectedAnswer(cell, expected)),
    ...differences("row", rowFacts(seen.row), expectedRow(expected)),
    ...tokenProblems(cell, expected, seen),
    ...attemptProblems(cell, expected, seen),
  ];
  if (expected.outcome === "unavailable") problems.push(...refusalProblems(seen));
  return problems;
}

/** Attempts that an upstream saw begin when the caller already had a word of the answer. */
export function retriesAfterFirstByte({ firstWordAt, atFirst, atSecond }: SeenCall): number {
  return [...atFirst, ...atSecond].filter(({ startedAt }) => startedAt > firstWordAt).length;
}

function expectedOf({ cell, index, outcome: listed }: ListedCall, seen: SeenCall): Expected {
  const { variant, hasSecond } = cell;
  const alone = variant.attempts[index] ?? attemptLimit;
  const ofTwo = variant.attemptsOfTwo[index] ?? 2;
  switch (listed) {
    case "broken or unavailable":
      return expectedOfEither({ cell, index, outcome: listed }, seen);
    case "broken":
      return { outcome: listed, attempts: 1, servedBy: "first" };
    case "unavailable":
      return hasSecond
        ? { outcome: "whole", attempts: ofTwo, servedBy: "second" }
        : { outcome: listed, attempts: alone, servedBy: "first" };
    case "whole":
    case "holed":
    case "uncounted": {
      const attempts = variant.mode !== "flap" ? 1 : hasSecond ? ofTwo : alone;
      return {
        outcome: listed,
        attempts,
        servedBy: hasSecond && attempts > 1 ? "second" : "first",
      };
    }
  }
}

/** The attempt whose beginning the runtime did not forget was the last. */
function expectedOfEither(listed: ListedCall, seen: SeenCall): Expected {
  const isBroken = seen.text.includes("data: ") && !seen.text.includes("[DONE]");
  if (!isBroken) return expectedOf({ ...listed, outcome: "unavailable" }, seen);
  const attempts = listed.cell.hasSecond ? 1 : Math.min(seen.atFirst.length, attemptLimit);
  return { outcome: "broken", attempts, servedBy: "first" };
}

interface Answer {
  readonly status: number;
  readonly content: string;
  readonly finish: string;
  readonly error: string;
}

function readPlain({ status, text }: SeenCall): Answer {
  const body = JSON.parse(text) as {
    readonly choices?: readonly [
      { readonly message: { readonly content: string }; readonly finish_reason: string },
    ];
    readonly error?: { readonly code: string };
  };
  const choice = body.choices?.[0];
  return {
    status,
    content: shortened(choice?.message.content ?? ""),
    finish: choice?.finish_reason ?? "",
    error: body.error?.code ?? "",
  };
}

function readStream(seen: SeenCall): Answer {
  const { status, text } = seen;
  if (status !== 200) return readPlain(seen);
  const { chunks, isDone } = parseStream(text);
  const reasons = chunks.map((chunk) => chunk.choices?.[0]?.finish_reason ?? "");
  const content = contentOf(text);
  const last = chunks.at(-1);
  const hasProperFrame = last?.error && errorBodyProblem(JSON.stringify(last)) === undefined;
  return {
    status,
    // An answer that breaks off may end anywhere, but nothing of it may be wrong.
    content: isDone || !words.startsWith(content) ? shortened(content) : "a beginning",
    finish: [...reasons.filter((reason) => reason !== ""), ...(isDone ? ["DONE"] : [])].join(),
    error: hasProperFrame ? String(last.error?.code) : "",
  };
}

function contentOf(text: string): string {
  const { chunks } = parseStream(text);
  return chunks.map((chunk) => chunk.choices?.[0]?.delta.content ?? "").join("");
}

const longAnswerLength = 80_000;

function shortened(content: string): string {
  if (hasHole(content, words)) return "an answer with a hole";
  return content.length > longAnswerLength ? "a long answer" : content;
}

const outsized = new Set(["giant chunk", "a million chunks"]);

function expectedAnswer({ variant, isStreamed }: Cell, { outcome }: Expected): Answer {
  switch (outcome) {
    case "whole":
    case "uncounted": {
      const content = outsized.has(variant.mode) ? "a long answer" : words;
      return { status: 200, content, finish: isStreamed ? "stop,DONE" : "stop", error: "" };
    }
    case "holed":
      return { status: 200, content: "an answer with a hole", finish: "stop,DONE", error: "" };
    case "broken":
      return { status: 200, content: "a beginning", finish: "", error: "model_unavailable" };
    case "unavailable":
      return { status: 503, content: "", finish: "", error: "model_unavailable" };
  }
}

type RowFacts = Readonly<Record<"outcome" | "status" | "code" | "attempts" | "source", unknown>>;

function rowFacts(row: UsageRecord | undefined): Partial<RowFacts> {
  if (row === undefined) return {};
  const { outcome, status, code, attempts, usageSource: source } = row;
  return { outcome, status, code, attempts, source };
}

function expectedRow({ outcome, attempts }: Expected): RowFacts {
  const completed = { outcome: "completed", status: 200, code: undefined, attempts };
  const failed = { outcome: "failed", status: 503, code: "model_unavailable", attempts };
  switch (outcome) {
    case "whole":
    case "holed":
      return { ...completed, source: "upstream" };
    case "uncounted":
      return { ...completed, source: "counted" };
    case "broken":
      return { ...failed, source: "counted" };
    case "unavailable":
      return { ...failed, source: "estimated" };
  }
}

function tokenProblems(cell: Cell, expected: Expected, seen: SeenCall): readonly string[] {
  const { row } = seen;
  if (row === undefined) return [];
  const { inputTokens, outputTokens } = row;
  const told = [inputTokens, outputTokens];
  if (expected.outcome === "unavailable") return differences("tokens", told, [0, 0]);
  const entry = (expected.servedBy === "second" ? seen.atSecond : seen.atFirst).at(-1);
  if (expected.outcome === "whole" || expected.outcome === "holed") {
    const isInflated = cell.variant.mode === "wrong usage";
    const counts = [entry?.promptTokens ?? 0, entry?.completionTokens ?? 0];
    const reported = isInflated ? counts.map((count) => count * 10 + 10) : counts;
    return differences("tokens", told, reported);
  }
  return inputTokens > 0 && outputTokens > 0 ? [] : [`tokens are ${told.join(" and ")}`];
}

function attemptProblems(cell: Cell, expected: Expected, seen: SeenCall): readonly string[] {
  const { atFirst, atSecond } = seen;
  const isSecond = expected.servedBy === "second";
  const ofFirst = isSecond ? expected.attempts - 1 : expected.attempts;
  // A handshake that fails is no call yet.
  const seenByFirst = cell.variant.isSecure === true ? 0 : ofFirst;
  return [
    ...differences("attempts at the first", atFirst.length, seenByFirst),
    ...differences("attempts at the second", atSecond.length, isSecond ? 1 : 0),
    ...differences("retries after the first byte", retriesAfterFirstByte(seen), 0),
  ];
}

function refusalProblems({ headers, text }: SeenCall): readonly string[] {
  const shape = errorShapeProblem(headers, text);
  const pacing = [headers.get("x-should-retry"), Number(headers.get("retry-after")) >= 1];
  return [
    ...(shape === undefined ? [] : [shape]),
    ...differences("pacing", pacing, ["true", true]),
  ];
}

function differences(name: string, found: unknown, wanted: unknown): readonly string[] {
  if (Bun.deepEquals(found, wanted)) return [];
  return [`${name} is ${Bun.inspect(found)}, not ${Bun.inspect(wanted)}`];
}
