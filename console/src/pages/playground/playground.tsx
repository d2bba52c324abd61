import "./playground.css";
import type { Choices, KeyView } from "../../api/contract.ts";
import { useChoices } from "../../api/use-read.ts";
import { ButtonLink } from "../../parts/button.tsx";
import { Empty } from "../../parts/error-note.tsx";
import { optionsOf, Select } from "../../parts/field.tsx";
import { exactText } from "../../parts/numbers.tsx";
import { Loaded, Page } from "../../parts/page.tsx";
import { Views } from "../../parts/views.tsx";
import { useUrl } from "../../url.ts";
import { keyName } from "../keys/key-words.tsx";
import { Chat } from "./chat.tsx";
import { Embedding } from "./embedding.tsx";

const views = [
  { value: "", label: "Chat" },
  { value: "embedding", label: "Embedding" },
];

/** Does it answer as I want? Texts are in the memory of this page alone. */
export function PlaygroundPage() {
  const [{ account }] = useUrl({ account: "" });
  const scope = { status: "active", account_id: account };
  const choices = useChoices(["keys", "models", "environments"], scope);
  return (
    <Page title="Playground" question="Does it answer as I want?">
      <Loaded query={choices}>
        {(found) =>
          found.keys.length > 0 ? (
            <Playground {...found} />
          ) : (
            <Empty
              sentence="A call needs a key, and no key is active."
              action={
                <ButtonLink to="/keys" own={{ create: "key" }} look="primary">
                  Create a key
                </ButtonLink>
              }
            />
          )
        }
      </Loaded>
    </Page>
  );
}

/** Asks for the key and for a model that it may call, and shows what is tried with them. */
function Playground({
  keys,
  models,
  environments,
}: Pick<Choices, "keys" | "models" | "environments">) {
  const [url, change] = useUrl({ view: "", key: "", model: "" });
  const key = keys.find(({ id }) => id === url.key) ?? keys[0];
  if (key === undefined) return null;
  const { environment, allowed_models: allowed } = key;
  const kind = url.view === "embedding" ? "embedding" : "chat";
  const known = models.filter(
    (model) =>
      model.kind === kind &&
      model.environment === environment &&
      allowed?.includes(model.alias) !== false,
  );
  const model = known.find(({ alias }) => alias === url.model) ?? known[0];
  const called = model && { keyId: key.id, environment, environments, model: model.alias };
  const View = kind === "chat" ? Chat : Embedding;
  return (
    <>
      <Views label="Chat or embedding" views={views} own={{ key: key.id }} />
      <div className="row top">
        <Select
          label="Key that calls"
          value={key.id}
          options={keys.map((each) => ({ value: each.id, label: labelOf(each) }))}
          onChange={(id) => change({ key: id, model: "" })}
        />
        {model !== undefined && (
          <Select
            label="Model"
            value={model.alias}
            options={optionsOf(known.map(({ alias }) => alias))}
            onChange={(alias) => change({ model: alias })}
            hint={windowOf(model.context_window, model.max_output_tokens)}
          />
        )}
      </div>
      {called === undefined ? (
        <Empty sentence={`This key may call no ${kind} model.`} />
      ) : (
        <View key={key.id} called={called} />
      )}
    </>
  );
}

function windowOf(input: number, output: number | null): string {
  const most = output === null ? "" : `, at most ${exactText(output)} of output`;
  return `Window of ${exactText(input)} tokens${most}`;
}

function labelOf(key: KeyView): string {
  return `${keyName(key)} · ${key.application} · ${key.environment}`;
}
