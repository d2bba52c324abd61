import type { ChatAnswer } from "../../api/playground.ts";
import { ErrorNote } from "../../parts/error-note.tsx";
import { Cost } from "../../parts/money.tsx";
import { exactText } from "../../parts/numbers.tsx";
import { durationText } from "../../parts/time.tsx";
import { AppLink } from "../../parts/button.tsx";

/** An answer as it comes. Whatever a model says is text. */
export function AnswerView({ answer }: { readonly answer: ChatAnswer | undefined }) {
  if (answer === undefined) {
    return (
      <p className="muted" role="status">
        Waiting for the first event…
      </p>
    );
  }
  const { thoughts, text, toolCalls, failure } = answer;
  return (
    <div className="answer stack tight" aria-busy={answer.totalMs === undefined}>
      {thoughts !== "" && (
        <details>
          <summary className="muted">Reasoning</summary>
          <p className="said-text muted">{thoughts}</p>
        </details>
      )}
      {text !== "" && <p className="said-text">{text}</p>}
      {toolCalls.map(({ id, name, input }) => (
        <pre key={id} tabIndex={0} aria-label={`Call of ${name}`}>{`${name}(${input})`}</pre>
      ))}
      {failure !== undefined && <ErrorNote failure={failure} />}
      {answer.totalMs !== undefined && <Figures answer={answer} />}
    </div>
  );
}

function Figures({ answer }: { readonly answer: ChatAnswer }) {
  const { usage, firstMs, totalMs = 0, finish, requestId, costUsd } = answer;
  const output = usage?.completion_tokens;
  const writingMs = totalMs - (firstMs ?? totalMs);
  const figures = [
    ...(finish === undefined ? [] : [`ended: ${finish}`]),
    ...(usage === undefined ? [] : [`${exactText(usage.prompt_tokens)} tokens in`]),
    ...(output === undefined ? [] : [`${exactText(output)} out`]),
    ...(firstMs === undefined ? [] : [`first event after ${durationText(firstMs)}`]),
    `${durationText(totalMs)} in all`,
    ...(output === undefined || writingMs < 1
      ? []
      : [`${exactText(Math.round(output / (writingMs / 1_000)))} tokens/s`]),
  ];
  return (
    <p className="muted small">
      {figures.join(" · ")}
      {usage !== undefined && (
        <>
          {" · "}
          <Cost usd={costUsd ?? null} />
        </>
      )}
      {requestId !== undefined && (
        <>
          {" · "}
          <AppLink to={`/calls/${requestId}`}>this call</AppLink>
        </>
      )}
    </p>
  );
}
