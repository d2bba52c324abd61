import type { Attempt, CallRecord } from "./records.ts";

type Wrong = (rule: string, text: string) => void;

/** What a caller got is what one upstream said, and what is billed is what that upstream counted. */
export function checkAnswer(record: CallRecord, wrong: Wrong): void {
  if (record.plan.kind === "embedding") return checkEmbeddings(record, wrong);
  const { texts, isAnswered, closed, attempts } = record;
  const [first] = texts.filter((text) => text !== "");
  if (first === undefined) {
    if (isAnswered) wrong("answers", "was answered with nothing");
    return;
  }
  const serving = attempts.find(({ id }) => first.startsWith(`${id}.`));
  if (serving === undefined) return wrong("answers", `got ${first}, which nobody wrote`);
  const { truth } = serving.script;
  texts.forEach((text, choice) => {
    const told = truth.texts[choice] ?? "";
    const isRight = isAnswered ? text === told : told.startsWith(text);
    if (!isRight) wrong("answers", `choice ${choice} is "${text}" of "${told}"`);
  });
  if (!isAnswered || closed === undefined) return;
  if (!truth.mayComplete) wrong("answers", `${serving.id} (${serving.fault}) was taken for whole`);
  if (closed.target !== `${serving.upstream}/${serving.model}`) {
    wrong("ledger", `${closed.target} is named, and ${serving.upstream} answered`);
  }
  if (!truth.isWhole || truth.usage === undefined) return;
  const { inputTokens, outputTokens } = truth.usage;
  const isBilled = closed.inputTokens === inputTokens && closed.outputTokens === outputTokens;
  if (isBilled && closed.usageSource === "upstream") return;
  const billed = `${closed.inputTokens}+${closed.outputTokens} (${closed.usageSource})`;
  wrong("ledger", `billed ${billed} of ${inputTokens}+${outputTokens}`);
}

function checkEmbeddings({ attempts, isAnswered, closed }: CallRecord, wrong: Wrong): void {
  if (!isAnswered || closed === undefined) return;
  const done = attempts.filter(isDone);
  if (done.length === 0) return wrong("answers", "was answered by nobody");
  if (done.some(({ script }) => script.truth.usage === undefined)) return;
  const told = done.reduce((sum, { script }) => sum + (script.truth.usage?.inputTokens ?? 0), 0);
  if (closed.inputTokens === told && closed.usageSource === "upstream") return;
  wrong("ledger", `billed ${closed.inputTokens} (${closed.usageSource}) of ${told}`);
}

function isDone({ script, how }: Attempt): boolean {
  return script.truth.isWhole && script.status === 200 && how === "closed";
}
