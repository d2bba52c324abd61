/** A harness as agents without tool calls have it: a model that acts by the words it says. */

/** The newest message comes last. */
export interface ReactMessage {
  readonly role: "user" | "assistant";
  readonly content: string;
}

/** Asks the model to go on, and to stop where its own observation would begin. */
export type Say = (messages: readonly ReactMessage[]) => Promise<Said>;

export interface Said {
  readonly text: string;
  readonly finishReason: string | null | undefined;
}

export interface ReactRun {
  readonly answer: string;
  readonly said: readonly Said[];
}

export const stopText = "Observation:";

const people: Readonly<Record<string, number>> = { Rome: 2_800_000, Paris: 2_100_000 };

/**
 * What the model writes in each of its turns if nobody stops it: a made-up observation behind every
 * action. Each turn builds on what the actions before it have really brought.
 */
const turns: readonly ((observed: readonly string[]) => string)[] = [
  () =>
    "Thought: I need both cities. Rome first.\nAction: population[Rome]\n" +
    "Observation: 7\nThought: Seven.\nFinal Answer: 7",
  ([rome]) =>
    `Thought: Rome has ${rome}. Paris is next.\nAction: population[Paris]\n` +
    "Observation: 8\nFinal Answer: 15",
  ([rome, paris]) => `Thought: I know both.\nFinal Answer: ${Number(rome) + Number(paris)} people`,
];

/** Each turn as far as the model may say it. */
export const wantedTurns: readonly string[] = [
  "Thought: I need both cities. Rome first.\nAction: population[Rome]\n",
  "Thought: Rome has 2800000. Paris is next.\nAction: population[Paris]\n",
  "Thought: I know both.\nFinal Answer: 4900000 people",
];

export const wantedAnswer = "4900000 people";

/** Runs actions and tells their outcome until there is a final answer. */
export async function runReact(say: Say): Promise<ReactRun> {
  const messages: ReactMessage[] = [];
  const observed: string[] = [];
  const said: Said[] = [];
  for (const turn of turns) {
    messages.push({ role: "user", content: `echo: ${turn(observed)}` });
    const one = await say(messages);
    said.push(one);
    const [, answer] = /Final Answer: (.*)/.exec(one.text) ?? [];
    if (answer !== undefined) return { answer, said };
    const [, city = "nowhere"] = /Action: population\[(\w+)\]/.exec(one.text) ?? [];
    const observation = String(people[city]);
    observed.push(observation);
    messages.push({ role: "assistant", content: `${one.text}${stopText} ${observation}` });
  }
  throw new Error("the agent came to no answer");
}
