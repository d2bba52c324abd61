import type { Attempt, CallRecord } from "./records.ts";

type Wrong = (rule: string, text: string) => void;

/** The caller's answer must be that of its upstreams, and the bill must be their counts. */
export function checkAnswer(record: CallRecord, wrong: Wrong): void {
  if (record.plan.kind === "embedding") return checkEmbeddings(record, wrong);
  const { texts, isAnswered, plan } = record;
  const serving = new Set<Attempt>();
  texts.forEach((text, choice) => {
    const attempt = checkText(record, text, (problem) => {
      wrong("answers", `choice ${choice} ${problem}`);
    });
    if (attempt !== undefined) serving.add(attempt);
  });
  if (!isAnswered) return;
  const whole = texts.filter((text) => text !== "").length;
  if (whole !== plan.parts) wrong("answers", `got ${whole} of ${plan.parts} choices`);
  checkBill(record, [...serving], wrong);
}

/** Each choice is from one attempt, which is named by its first word. */
function checkText(
  { attempts, isAnswered }: CallRecord,
  text: string,
  wrong: (problem: string) => void,
): Attempt | undefined {
  if (text === "") return undefined;
  const serving = attempts.find(({ id }) => text.startsWith(`${id}.`));
  if (serving === undefined) {
    wrong(`is "${text}", which nobody wrote`);
    return undefined;
  }
  const { texts, mayComplete } = serving.script.truth;
  const isMatch = texts.some((sent) => (isAnswered ? sent === text : sent.startsWith(text)));
  if (!isMatch) wrong(`is "${text}" of "${texts.join('" or "')}"`);
  if (isAnswered && !mayComplete) wrong(`of ${serving.id} (${serving.fault}) was taken for whole`);
  return serving;
}

function checkBill({ closed }: CallRecord, serving: readonly Attempt[], wrong: Wrong): void {
  if (closed === undefined) return;
  if (!serving.some(({ upstream, model }) => closed.target === `${upstream}/${model}`)) {
    wrong("ledger", `${closed.target} is named, and others answered`);
  }
  let inputTokens = 0;
  let outputTokens = 0;
  for (const { script } of serving) {
    const { isWhole, usage } = script.truth;
    if (!isWhole || usage === undefined) return;
    inputTokens += usage.inputTokens;
    outputTokens += usage.outputTokens;
  }
  const isBilled = closed.inputTokens === inputTokens && closed.outputTokens === outputTokens;
  if (isBilled && closed.usageSource === "upstream") return;
  // Counts beyond the caller's cap or the context window are limited to them.
  const isLess = closed.inputTokens <= inputTokens && closed.outputTokens <= outputTokens;
  if (isLess && closed.usageSource === "bounded") return;
  // An attempt that was cut before costs what it may have generated; either may be limited, too.
  const isMore = closed.inputTokens >= inputTokens && closed.outputTokens >= outputTokens;
  const isLimited = closed.usageSource !== "upstream" && closed.inputTokens > 0;
  if ((isMore || isLimited) && closed.mayBeBilledTwice === true) return;
  const billed = `${closed.inputTokens}+${closed.outputTokens} (${closed.usageSource})`;
  wrong("ledger", `billed ${billed} of ${inputTokens}+${outputTokens}`);
}

function checkEmbeddings({ attempts, isAnswered, closed }: CallRecord, wrong: Wrong): void {
  if (!isAnswered || closed === undefined) return;
  const done = attempts.filter(isDone);
  if (done.length === 0) return wrong("answers", "was answered by nobody");
  if (done.some(({ script }) => script.truth.usage === undefined)) return;
  const counted = done.reduce((sum, { script }) => sum + (script.truth.usage?.inputTokens ?? 0), 0);
  const { inputTokens, usageSource, mayBeBilledTwice } = closed;
  if (inputTokens === counted && usageSource === "upstream") return;
  // Inputs that two targets processed are billed once, or again if the first was cut, and the row
  // has a field for it.
  if (mayBeBilledTwice === true && inputTokens > 0) return;
  wrong("ledger", `billed ${closed.inputTokens} (${closed.usageSource}) of ${counted}`);
}

function isDone({ script, how }: Attempt): boolean {
  return script.truth.isWhole && script.status === 200 && how === "closed";
}
