import { Note } from "../../parts/error-note.tsx";
import { Checkbox, Field } from "../../parts/field.tsx";
import { binderOf } from "../../parts/form.tsx";

/** As they are typed; empty ones are not sent. */
export interface ChatOptions {
  readonly system: string;
  readonly temperature: string;
  readonly maxTokens: string;
  readonly tools: string;
  readonly schema: string;
  readonly isStreamed: boolean;
}

export const initialOptions: ChatOptions = {
  system: "",
  temperature: "",
  maxTokens: "",
  tools: "",
  schema: "",
  isStreamed: true,
};

const toolsExample = '[{"name": "weather", "parameters": {"type": "object"}}]';
const schemaExample = '{"type": "object", "properties": {"city": {"type": "string"}}}';

interface ReadOptions {
  /** Fields of the request. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** Why they cannot be sent. */
  readonly mistake: string | undefined;
}

/** The gateway checks values; what must be JSON is read here. */
export function readOptions(options: ChatOptions): ReadOptions {
  const { temperature, maxTokens, isStreamed } = options;
  const tools = readJson(options.tools);
  const schema = readJson(options.schema);
  const mistakes = [
    ...(tools === "bad" || (tools !== undefined && !Array.isArray(tools))
      ? ["Tools must be a JSON array of functions."]
      : []),
    ...(schema === "bad" ? ["The answer's schema must be JSON."] : []),
  ];
  return {
    mistake: mistakes[0],
    fields: {
      ...(temperature !== "" && { temperature: Number(temperature) }),
      ...(maxTokens !== "" && { max_completion_tokens: Number(maxTokens) }),
      ...(Array.isArray(tools) && {
        tools: tools.map((definition: unknown) => ({ type: "function", function: definition })),
      }),
      ...(schema !== undefined && {
        response_format: { type: "json_schema", json_schema: { name: "answer", schema } },
      }),
      ...(isStreamed && { stream: true, stream_options: { include_usage: true } }),
    },
  };
}

/** Undefined: nothing was typed. */
function readJson(text: string): unknown {
  if (text.trim() === "") return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return "bad";
  }
}

export function Options({
  options,
  mistake,
  onChange,
}: {
  readonly options: ChatOptions;
  readonly mistake: string | undefined;
  readonly onChange: (options: ChatOptions) => void;
}) {
  const change = (changed: Partial<ChatOptions>): void => onChange({ ...options, ...changed });
  const { isStreamed, ...texts } = options;
  const bind = binderOf(texts, change);
  return (
    <div className="stack card">
      <h2>Options</h2>
      <Field {...bind("system")} label="System instructions" rows={3} />
      <Field
        {...bind("temperature")}
        label="Temperature"
        type="number"
        placeholder="the model's own"
      />
      <Field
        {...bind("maxTokens")}
        label="Longest answer in tokens"
        type="number"
        placeholder="the plan's own"
      />
      <Field
        {...bind("tools")}
        label="Tools"
        rows={3}
        isMono
        placeholder={toolsExample}
        hint="A JSON array of functions. You write their results."
      />
      <Field
        {...bind("schema")}
        label="JSON schema of the answer"
        rows={3}
        isMono
        placeholder={schemaExample}
      />
      <Checkbox
        label="Stream the answer"
        isSelected={isStreamed}
        onChange={(chosen) => change({ isStreamed: chosen })}
      />
      {mistake !== undefined && <Note tone="warn">{mistake}</Note>}
    </div>
  );
}
