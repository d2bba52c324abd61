import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import type { Choices } from "../../api/contract.ts";
import { chat, type ChatAnswer } from "../../api/playground.ts";
import { kept, queries } from "../../api/use-read.ts";
import { Button } from "../../parts/button.tsx";
import { Details } from "../../parts/details.tsx";
import { Field } from "../../parts/field.tsx";
import { Snippets } from "../../parts/snippets.tsx";
import { AnswerView } from "./answer.tsx";
import { type ChatOptions, initialOptions, Options, readOptions } from "./options.tsx";

type Fields = Readonly<Record<string, unknown>>;

/** Who calls what. */
export interface Called {
  readonly keyId: string;
  readonly environment: string;
  readonly environments: Choices["environments"];
  readonly model: string;
}

/** What the user wrote, or the results of the tools that the answer before called; and its answer. */
interface Turn {
  readonly said: string;
  readonly results: Readonly<Record<string, string>>;
  readonly answer: ChatAnswer | undefined;
}

/** What is set and said, for each key, until the tab is closed or the user signs out. */
queries.setQueryDefaults([kept], { gcTime: Number.POSITIVE_INFINITY });

function useKept<Value>(name: string, initial: Value) {
  const [value, setValue] = useState(() => queries.getQueryData<Value>([kept, name]) ?? initial);
  const keep = (next: Value): void => {
    queries.setQueryData<Value>([kept, name], next);
    setValue(next);
  };
  return [value, keep] as const;
}

/** The turns so far. A closed page, like `stop`, ends the call at the upstream. */
function useConversation({ keyId, model }: Called, { system }: ChatOptions, fields: Fields) {
  const [turns, setTurns] = useKept<readonly Turn[]>(`turns ${keyId}`, []);
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(), []);
  const last = turns.at(-1)?.answer;

  const bodyWith = (all: readonly Turn[]) => ({
    model,
    messages: [...systemOf(system), ...all.flatMap(messagesOf)],
    ...fields,
  });
  const send = async (turn: Turn): Promise<ChatAnswer> => {
    // What failed is not sent again.
    const before = turns.filter(({ answer }) => answer?.failure === undefined);
    const show = (answer: ChatAnswer): void => setTurns([...before, { ...turn, answer }]);
    setTurns([...before, turn]);
    const abort = new AbortController();
    running.current = abort;
    const body = bodyWith([...before, turn]);
    const answer = await chat({ keyId, body, signal: abort.signal }, show);
    show(answer);
    return answer;
  };
  return {
    turns,
    isRunning: turns.length > 0 && last?.totalMs === undefined,
    /** Calls of tools that wait for their results. */
    asked: last?.failure === undefined ? (last?.toolCalls ?? []) : [],
    bodyWith,
    send,
    stop: () => running.current?.abort(),
    clear: () => setTurns([]),
  };
}

export function Chat({ called }: { readonly called: Called }) {
  const [options, setOptions] = useKept(`options ${called.keyId}`, initialOptions);
  const [said, setSaid] = useState("");
  const [results, setResults] = useState<Readonly<Record<string, string>>>({});
  const { mistake, fields } = readOptions(options);
  const conversation = useConversation(called, options, fields);
  const { turns, asked, isRunning } = conversation;
  const canSend = !isRunning && mistake === undefined && (asked.length > 0 || said.trim() !== "");

  const send = async (): Promise<void> => {
    if (!canSend) return;
    setSaid("");
    setResults({});
    const { failure } = await conversation.send({ said, results, answer: undefined });
    // It can be mended and sent again.
    if (failure === undefined) return;
    setSaid(said);
    setResults(results);
  };
  const sendByKey = (event: KeyboardEvent): void => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void send();
  };
  return (
    <div className="playground">
      <div className="stack">
        <Turns turns={turns} />
        <div className="stack tight" onKeyDown={sendByKey}>
          {asked.map(({ id, name }) => (
            <Field
              key={id}
              label={`Result of ${name}`}
              value={results[id] ?? ""}
              onChange={(result) => setResults({ ...results, [id]: result })}
              rows={2}
              isMono
            />
          ))}
          {asked.length === 0 && (
            <Field
              label="Your message"
              value={said}
              onChange={setSaid}
              rows={3}
              placeholder="Hello!"
              hint="Ctrl+Enter sends it. The call is under the limits of the key, and in its usage."
            />
          )}
          <div className="row">
            <Button look="primary" isDisabled={!canSend} onPress={send}>
              Send
            </Button>
            {isRunning && <Button onPress={conversation.stop}>Stop</Button>}
            {turns.length > 0 && !isRunning && (
              <Button look="quiet" onPress={conversation.clear}>
                Start anew
              </Button>
            )}
          </div>
        </div>
      </div>
      <div className="stack">
        <Options options={options} mistake={mistake} onChange={setOptions} />
        <Details summary="As code">
          <Snippets
            environment={called.environment}
            environments={called.environments}
            request={{
              api: "chat/completions",
              body: conversation.bodyWith([...turns, ...unsentTurn(said, turns)]),
            }}
          />
        </Details>
      </div>
    </div>
  );
}

function Turns({ turns }: { readonly turns: readonly Turn[] }) {
  return (
    <ol className="plain-list turns stack" aria-label="Conversation">
      {turns.map((turn, index) => (
        <li key={index} className="stack tight">
          {turn.said !== "" && <p className="said">{turn.said}</p>}
          {Object.entries(turn.results).map(([id, result]) => (
            <p key={id} className="said mono">
              {result}
            </p>
          ))}
          <AnswerView answer={turn.answer} />
        </li>
      ))}
    </ol>
  );
}

function systemOf(text: string) {
  return text.trim() === "" ? [] : [{ role: "system", content: text }];
}

/** The text that is being written; without one, an example of it. */
function unsentTurn(said: string, turns: readonly Turn[]): readonly Turn[] {
  if (said === "" && turns.length > 0) return [];
  return [{ said: said === "" ? "Hello!" : said, results: {}, answer: undefined }];
}

/** A turn as messages of chat completions. */
function messagesOf({ said, results, answer }: Turn): readonly object[] {
  const tools = Object.entries(results).map(([id, content]) => ({
    role: "tool",
    tool_call_id: id,
    content,
  }));
  const user = said === "" ? [] : [{ role: "user", content: said }];
  if (answer === undefined || answer.failure !== undefined) return [...tools, ...user];
  const calls = answer.toolCalls.map(({ id, name, input }) => ({
    id,
    type: "function",
    function: { name, arguments: input },
  }));
  const reply = {
    role: "assistant",
    content: answer.text,
    ...(calls.length > 0 && { tool_calls: calls }),
  };
  return [...tools, ...user, reply];
}
