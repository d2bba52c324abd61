import "./playground.css";
import type { ReactNode } from "react";
import type { KeyView } from "../../api/contract.ts";
import { useList, useRead } from "../../api/use-read.ts";
import { ButtonLink } from "../../parts/button.tsx";
import { Empty } from "../../parts/error-note.tsx";
import { Select } from "../../parts/field.tsx";
import { exactText } from "../../parts/numbers.tsx";
import { Loaded, Page } from "../../parts/page.tsx";
import { Views } from "../../parts/views.tsx";
import { useHref, useUrl } from "../../url.ts";
import { keyName } from "../keys/key-words.tsx";
import { Chat } from "./chat.tsx";
import { Embedding } from "./embedding.tsx";

const views = [
  { value: "", label: "Chat" },
  { value: "embedding", label: "Embedding" },
];

/** Does it answer as I want? Texts are in the memory of this page alone. */
export function PlaygroundPage() {
  const [url, change] = useUrl({ view: "", key: "", model: "", account: "" });
  const href = useHref();
  const keys = useList("/keys", { status: "active", account_id: url.account, limit: 500 });
  return (
    <Page title="Playground" question="Does it answer as I want?">
      <Loaded query={keys.query}>
        {(rows) => {
          const key = rows.find(({ id }) => id === url.key) ?? rows[0];
          if (key === undefined) {
            return (
              <Empty
                sentence="A call needs a key, and no key is active."
                action={
                  <ButtonLink href={href("/keys", { create: "key" })} look="primary">
                    Create a key
                  </ButtonLink>
                }
              />
            );
          }
          return (
            <>
              <Views
                label="Chat or embedding"
                views={views}
                current={url.view}
                href={(view) => href("/playground", { key: key.id, ...(view !== "" && { view }) })}
              />
              <WithModel
                view={key}
                kind={url.view === "embedding" ? "embedding" : "chat"}
                wanted={url.model}
                onModel={(model) => change({ model })}
                keyChoice={
                  <Select
                    label="Key that calls"
                    value={key.id}
                    options={rows.map((each) => ({ value: each.id, label: labelOf(each) }))}
                    onChange={(id) => change({ key: id, model: "" })}
                  />
                }
              />
            </>
          );
        }}
      </Loaded>
    </Page>
  );
}

/** Asks for the model, of those that the key may call, and shows what it is tried with. */
function WithModel({
  view,
  kind,
  wanted,
  onModel,
  keyChoice,
}: {
  readonly view: KeyView;
  readonly kind: "chat" | "embedding";
  readonly wanted: string;
  readonly onModel: (alias: string) => void;
  readonly keyChoice: ReactNode;
}) {
  const models = useRead("/models");
  const { allowed_models: allowed, environment } = view;
  return (
    <Loaded query={models}>
      {({ data }) => {
        const known = data.filter(
          (model) =>
            model.kind === kind &&
            model.environment === environment &&
            allowed?.includes(model.alias) !== false,
        );
        const model = known.find(({ alias }) => alias === wanted) ?? known[0];
        if (model === undefined) {
          return (
            <>
              <div className="row">{keyChoice}</div>
              <Empty sentence={`This key may call no ${kind} model.`} />
            </>
          );
        }
        const called = { keyId: view.id, environment, model: model.alias };
        return (
          <>
            <div className="row top">
              {keyChoice}
              <Select
                label="Model"
                value={model.alias}
                options={known.map(({ alias }) => ({ value: alias, label: alias }))}
                onChange={onModel}
                hint={windowOf(model.context_window, model.max_output_tokens)}
              />
            </div>
            {kind === "chat" ? (
              <Chat key={view.id} called={called} />
            ) : (
              <Embedding key={view.id} called={called} />
            )}
          </>
        );
      }}
    </Loaded>
  );
}

function windowOf(input: number, output: number | null): string {
  const most = output === null ? "" : `, at most ${exactText(output)} of output`;
  return `Window of ${exactText(input)} tokens${most}`;
}

function labelOf(key: KeyView): string {
  return `${keyName(key)} · ${key.application} · ${key.environment}`;
}
