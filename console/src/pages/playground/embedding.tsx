import { useEffect, useRef, useState } from "react";
import type { ApiFailure } from "../../api/failure.ts";
import { embed, type EmbeddingBody } from "../../api/playground.ts";
import { Details } from "../../parts/details.tsx";
import { Facts } from "../../parts/facts.tsx";
import { Field } from "../../parts/field.tsx";
import { Form } from "../../parts/form.tsx";
import { Cost } from "../../parts/money.tsx";
import { exactText } from "../../parts/numbers.tsx";
import { durationText } from "../../parts/time.tsx";
import { Snippets } from "../../parts/snippets.tsx";
import type { Called } from "./chat.tsx";
import { AppLink } from "../../parts/button.tsx";

interface Vector {
  readonly body: EmbeddingBody;
  readonly totalMs: number;
}

const shownNumbers = 8;

/** One text becomes a vector. */
export function Embedding({ called }: { readonly called: Called }) {
  const [input, setInput] = useState("");
  const [vector, setVector] = useState<Vector>();
  const [failure, setFailure] = useState<ApiFailure>();
  const [isRunning, setRunning] = useState(false);
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(), []);
  const body = { model: called.model, input: input === "" ? "Hello!" : input };

  const submit = async (): Promise<void> => {
    const abort = new AbortController();
    running.current = abort;
    setRunning(true);
    const startedAt = performance.now();
    try {
      const { keyId } = called;
      const got = await embed({ keyId, body, signal: abort.signal });
      setFailure(got.ok ? undefined : got.failure);
      const totalMs = performance.now() - startedAt;
      setVector(got.ok ? { body: got.value, totalMs } : undefined);
    } catch (error) {
      if (!abort.signal.aborted) throw error;
    }
    setRunning(false);
  };
  const numbers = vector?.body.data[0]?.embedding ?? [];
  return (
    <div className="playground">
      <div className="stack">
        <Form submit="Embed" isRunning={isRunning} failure={failure} onSubmit={submit}>
          <Field label="Text" value={input} onChange={setInput} rows={3} placeholder="Hello!" />
          {failure?.requestId !== undefined && (
            <AppLink to={`/calls/${failure.requestId}`}>this call</AppLink>
          )}
        </Form>
        {vector !== undefined && (
          <Facts
            facts={[
              ["Dimensions", exactText(numbers.length)],
              ["Length of the vector", Math.hypot(...numbers).toPrecision(4)],
              ["First numbers", numbers.slice(0, shownNumbers).map(shortText).join(", ")],
              ["Tokens", exactText(vector.body.usage.prompt_tokens)],
              ["Cost", <Cost key="cost" usd={vector.body.costUsd ?? null} />],
              ["Time", durationText(vector.totalMs)],
            ]}
          />
        )}
      </div>
      <Details summary="As code">
        <Snippets
          environment={called.environment}
          environments={called.environments}
          request={{ api: "embeddings", body }}
        />
      </Details>
    </div>
  );
}

function shortText(value: number): string {
  return value.toPrecision(3);
}
