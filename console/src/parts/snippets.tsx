import "./secret.css";
import { useState } from "react";
import { useRead } from "../api/use-read.ts";
import { Button } from "./button.tsx";
import { Copy } from "./copy.tsx";

const languages = ["curl", "TypeScript", "Python"] as const;
type Language = (typeof languages)[number];

/** Ready to run against the environment, with the key in `$SLUICE_KEY`. */
export function Snippets({
  environment,
  secret,
  model = "alpha-sonnet-4",
}: {
  readonly environment: string;
  /** Adds a button that copies with it; it never stands in the shown text. */
  readonly secret?: string;
  readonly model?: string;
}) {
  const [language, setLanguage] = useState<Language>("curl");
  const url = useBaseUrl(environment);
  const text = snippet(language, { url, model });
  return (
    <div className="stack tight">
      <div className="snippets-choice" role="group" aria-label="Language of the example">
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
export function useBaseUrl(environment: string): string {
  const { data } = useRead("/environments");
  const found = data?.data.find(({ name }) => name === environment);
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
      <div>
        <Copy text={text} what={what} look="plain" />
      </div>
    </div>
  );
}

function snippet(language: Language, { url, model }: { url: string; model: string }): string {
  switch (language) {
    case "curl":
      return `curl -N ${url}/chat/completions \\
  -H "Authorization: Bearer $SLUICE_KEY" -H "Content-Type: application/json" \\
  -d '{"model": "${model}", "stream": true, "messages": [{"role": "user", "content": "Hello!"}]}'`;
    case "TypeScript":
      return `import OpenAI from "openai";

const client = new OpenAI({ baseURL: "${url}", apiKey: process.env.SLUICE_KEY });
const answer = await client.chat.completions.create({
  model: "${model}",
  messages: [{ role: "user", content: "Hello!" }],
});
console.log(answer.choices[0]?.message.content);`;
    case "Python":
      return `import os
from openai import OpenAI

client = OpenAI(base_url="${url}", api_key=os.environ["SLUICE_KEY"])
answer = client.chat.completions.create(
    model="${model}",
    messages=[{"role": "user", "content": "Hello!"}],
)
print(answer.choices[0].message.content)`;
  }
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
