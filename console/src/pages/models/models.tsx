import type { Choices, ModelView } from "../../api/contract.ts";
import { useChoices } from "../../api/use-read.ts";
import { AppLink, ButtonLink } from "../../parts/button.tsx";
import { Empty } from "../../parts/error-note.tsx";
import { optionsOf, Select } from "../../parts/field.tsx";
import { Count } from "../../parts/numbers.tsx";
import { Loaded, Page } from "../../parts/page.tsx";
import { type ExampleRequest, greeting, Snippets } from "../../parts/snippets.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { useMayChange } from "../../shell/role.ts";
import { useUrl } from "../../url.ts";

/** What may I call, and how? */
export function ModelsPage() {
  const [url, change] = useUrl({ environment: "", model: "" });
  const choices = useChoices(["models", "environments"]);
  return (
    <Page title="Models" question="What may I call, and how?">
      <Loaded query={choices}>
        {({ models, environments }) => {
          const names = environments.map(({ name }) => name);
          const rows = models.filter(
            ({ environment }) => url.environment === "" || environment === url.environment,
          );
          const open = rows.find((model) => nameOf(model) === url.model);
          return (
            <>
              {names.length > 1 && (
                <div className="row">
                  <Select
                    label="Environment"
                    value={url.environment}
                    options={optionsOf(names, "All environments")}
                    onChange={(environment) => change({ environment })}
                  />
                </div>
              )}
              {rows.length === 0 ? (
                <Empty
                  sentence="No model is configured here."
                  command="sluice check-config sluice.yaml"
                />
              ) : (
                <Table
                  caption="Models"
                  columns={columnsFor(rows)}
                  rows={rows}
                  idOf={nameOf}
                  openId={open === undefined ? undefined : nameOf(open)}
                />
              )}
              {open !== undefined && <HowToCall model={open} environments={environments} />}
            </>
          );
        }}
      </Loaded>
    </Page>
  );
}

interface CallProps extends Pick<Choices, "environments"> {
  readonly model: ModelView;
}

function HowToCall({ model, environments }: CallProps) {
  const { alias, kind, environment } = model;
  const mayTry = useMayChange();
  const own = { model: alias, ...(kind === "embedding" && { view: kind }) };
  return (
    <section className="stack tight" aria-label={`How to call ${alias}`}>
      <div className="row spread">
        <h2>
          {alias} in {environment}
        </h2>
        {mayTry && (
          <ButtonLink to="/playground" own={own}>
            Try it
          </ButtonLink>
        )}
      </div>
      <Snippets environment={environment} environments={environments} request={exampleOf(model)} />
    </section>
  );
}

function exampleOf({ alias, kind }: ModelView): ExampleRequest {
  if (kind === "embedding") {
    return { api: "embeddings", body: { model: alias, input: "Hello!" } };
  }
  return greeting(alias);
}

/** An alias may be in several environments. */
function nameOf({ alias, environment }: ModelView): string {
  return `${environment}/${alias}`;
}

const columns: readonly Column<ModelView>[] = [
  ["Model", (model) => <ModelLink model={model} />],
  ["Kind", ({ kind }) => kind],
  ["Environment", ({ environment }) => environment, "wide"],
  ["Window, tokens", ({ context_window: size }) => <Count value={size} />, "number"],
  [
    "Longest answer",
    ({ max_output_tokens: most }) => (most === null ? "" : <Count value={most} />),
    "wide number",
  ],
];
const targets: Column<ModelView> = [
  "Targets, in order",
  (model) => (
    <ol className="plain-list mono small">
      {model.targets?.map((target) => (
        <li key={target}>{target}</li>
      ))}
    </ol>
  ),
  "wide",
];
const fallbacks: Column<ModelView> = ["Fallbacks", (model) => model.fallbacks.join(", "), "wide"];

/** Only operators are told of targets, and few models have fallbacks. */
function columnsFor(rows: readonly ModelView[]): readonly Column<ModelView>[] {
  return [
    ...columns,
    ...(rows.some((model) => model.targets !== null) ? [targets] : []),
    ...(rows.some((model) => model.fallbacks.length > 0) ? [fallbacks] : []),
  ];
}

function ModelLink({ model }: { readonly model: ModelView }) {
  const [{ environment }] = useUrl({ environment: "" });
  const own = { model: nameOf(model), ...(environment !== "" && { environment }) };
  return (
    <AppLink to="/models" own={own}>
      {model.alias}
    </AppLink>
  );
}
