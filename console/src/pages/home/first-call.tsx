import { useChoices } from "../../api/use-read.ts";
import { ButtonLink } from "../../parts/button.tsx";
import { Loaded } from "../../parts/page.tsx";
import { greeting, Snippets } from "../../parts/snippets.tsx";
import { useMayChange } from "../../shell/role.ts";

/** How to send the first call, while there is none to tell of. */
export function FirstCall() {
  const models = useChoices(["models", "environments"]);
  const mayChange = useMayChange();
  return (
    <section className="card stack tight" aria-label="The first call">
      <h2>No calls in the last 24 hours. Send one</h2>
      <ol className="stack tight">
        <li>
          {mayChange
            ? "Create a key, or take one that you have, "
            : "Take the key of an application "}
          and put it into the variable <code>SLUICE_KEY</code>:{" "}
          <code>export SLUICE_KEY=sk-slc_...</code>
          {mayChange && (
            <div className="row">
              <ButtonLink to="/keys" own={{ create: "key" }} look="primary">
                Create a key
              </ButtonLink>
            </div>
          )}
        </li>
        <li>Ask a model for an answer:</li>
      </ol>
      <Loaded query={models}>
        {({ models: known, environments }) => {
          const model = known.find(({ kind }) => kind === "chat");
          if (model === undefined) return <p>No chat model is configured.</p>;
          return (
            <Snippets
              environment={model.environment}
              environments={environments}
              request={greeting(model.alias)}
            />
          );
        }}
      </Loaded>
    </section>
  );
}
