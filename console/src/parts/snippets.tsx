import "./secret.css";
import { useState } from "react";
import type { Choices } from "../api/contract.ts";
import { useChoices } from "../api/use-read.ts";
import { Button } from "./button.tsx";
import { Copy } from "./copy.tsx";

const languages = ["curl", "TypeScript", "Python"] as const;
type Language = (typeof languages)[number];

/** A request of the data plane: the API and its body. */
export interface ExampleRequest {
  readonly api: "chat/completions" | "embeddings";
  readonly body: Readonly<Record<string, unknown>>;
}

export function greeting(model: string): ExampleRequest {
  const messages = [{ role: "user", content: "Hello!" }];
  return { api: "chat/completions", body: { model, messages, stream: true } };
}

/** Ready to run against the environment, with the key in `$SLUICE_KEY`. */
export function Snippets({
  environment,
  environments,
  secret,
  request = greeting("alpha-sonnet-4"),
}: {
  readonly environment: string;
  /** Where the page knows them; else they are asked for. */
  readonly environments?: Choices["environments"];
  /** Adds a button that copies with it; it never stands in the shown text. */
  readonly secret?: string;
  readonly request?: ExampleRequest;
}) {
  const [language, setLanguage] = useState<Language>("curl");
  const asked = useChoices(["environments"], {}, { isOff: environments !== undefined });
  const url = baseUrlOf(environment, environments ?? asked.data?.environments ?? []);
  const text = snippet(language, url, request);
  return (
    <div className="stack tight">
      <div className="row" role="group" aria-label="Language of the example">
        {languages.map((each) => (
          <Button
            key={each}
            look={each === language ? "plain" : "quiet"}
            aria-pressed={each === language}
            onPress={() => setLanguage(each)}
          >
            {each}
          </Button>
        ))}
      </div>
      <pre tabIndex={0} aria-label={`Example in ${language}`}>
        {text}
      </pre>
      <div className="row">
        <Copy text={text} what="the example" look="plain" />
        {secret !== undefined && (
          <Copy
            text={withSecret(language, text, secret)}
            what="the example"
            label="Copy with the key"
            look="plain"
          />
        )}
      </div>
    </div>
  );
}

/** Where callers of an environment reach the API. */
function baseUrlOf(environment: string, environments: Choices["environments"]): string {
  const found = environments.find(({ name }) => name === environment);
  const url = found?.base_url ?? "https://YOUR-SLUICE/v1";
  // A gateway that listens at all addresses is also at that of this page.
  return url.replace(/\/\/(?:0\.0\.0\.0|\[::\])(?=:)/, `//${window.location.hostname}`);
}

/** A text to copy. */
export function Snippet({ text, what }: { readonly text: string; readonly what: string }) {
  return (
    <div className="stack tight">
      <pre tabIndex={0} aria-label={what}>
        {text}
      </pre>
      <Copy text={text} what={what} look="plain" />
    </div>
  );
}

function snippet(language: Language, url: string, request: ExampleRequest): string {
  const { api, body } = request;
  const isChat = api === "chat/completions";
  const method = isChat ? "chat.completions.create" : "embeddings.create";
  const isStreamed = body["stream"] === true;
  switch (language) {
    case "curl":
      return `curl -N ${url}/${api} \\
  -H "Authorization: Bearer $SLUICE_KEY" -H "Content-Type: application/json" \\
  -d '${JSON.stringify(body).replaceAll("'", `'\\''`)}'`;
    case "TypeScript":
      return `import OpenAI from "openai";

const client = new OpenAI({ baseURL: "${url}", apiKey: process.env.SLUICE_KEY });
const answer = await client.${method}(${JSON.stringify(body, null, 2)});
${typeScriptEnd(isChat, isStreamed)}`;
    case "Python":
      return `import os
from openai import OpenAI

client = OpenAI(base_url="${url}", api_key=os.environ["SLUICE_KEY"])
answer = client.${method}(
${Object.entries(body)
  .map(([name, value]) => `    ${name}=${pythonText(value)},\n`)
  .join("")})
${pythonEnd(isChat, isStreamed)}`;
  }
}

function typeScriptEnd(isChat: boolean, isStreamed: boolean): string {
  if (!isChat) return "console.log(answer.data[0]?.embedding.length);";
  if (!isStreamed) return "console.log(answer.choices[0]?.message.content);";
  return `for await (const chunk of answer) {
  process.stdout.write(chunk.choices[0]?.delta.content ?? "");
}`;
}

function pythonEnd(isChat: boolean, isStreamed: boolean): string {
  if (!isChat) return "print(len(answer.data[0].embedding))";
  if (!isStreamed) return "print(answer.choices[0].message.content)";
  return `for chunk in answer:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="", flush=True)`;
}

/** A value of JSON as Python writes it. */
function pythonText(value: unknown): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(pythonText).join(", ")}]`;
  if (typeof value !== "object") return JSON.stringify(value);
  const entries = Object.entries(value).map(
    ([name, item]) => `${JSON.stringify(name)}: ${pythonText(item)}`,
  );
  return `{${entries.join(", ")}}`;
}

function withSecret(language: Language, text: string, secret: string): string {
  switch (language) {
    case "curl":
      return text.replace("$SLUICE_KEY", secret);
    case "TypeScript":
      return text.replace("process.env.SLUICE_KEY", `"${secret}"`);
    case "Python":
      return text.replace('os.environ["SLUICE_KEY"]', `"${secret}"`);
  }
}
