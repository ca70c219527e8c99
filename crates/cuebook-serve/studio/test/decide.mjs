// Conflicts, packs and grants.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { accessible, button, open, page, picture, project, see } from "./support.mjs";

export default async function decide() {
  // All candidates are side by side, each with what it renders.
  await open("view=decide");
  await see(page.getByRole("heading", { name: "greeting" }));
  assert.equal(await page.locator(".side-by-side section").count(), 2);
  await see(page.locator(".side-by-side").getByText("Welcome from the pack."));

  // A pack is shown before it is installed, with what it replaces.
  await page.getByLabel("Install from").fill(process.env.STUDIO_PACK);
  await button("Look at it").click();
  const proposed = page.getByLabel("A pack to install");
  await see(proposed.getByText("This pack replaces the prompt"));
  assert.equal(await page.locator("main img, main script, main b b").count(), 0, "the texts of a pack are texts");
  await see(proposed.getByText("<script>document.title='owned'</script>"));
  await see(proposed.getByText("\\u{202e}"));
  await accessible("decisions");
  await proposed.getByRole("checkbox").check();
  await button("Install", proposed).click();
  await see(page.getByText("installed tones"));

  await page.locator(".side-by-side section").filter({ hasText: "prompts/greeting" }).first().getByRole("button", { name: "Use this one" }).click();
  await page.locator(".side-by-side").waitFor({ state: "detached" });

  // Two packs fill one namespace: the choice is recorded as `cuebook resolve` records it.
  const namespace = page.locator("article").filter({ hasText: "provider.g" });
  await see(namespace.getByText("choose", { exact: true }));
  await namespace.locator("p").filter({ hasText: "tones" }).getByRole("button", { name: "Use this one" }).click();
  await see(namespace.getByText("chosen", { exact: true }));
  await see(namespace.locator("p").filter({ hasText: "tones" }).getByText("in use", { exact: true }));
  const resolution = JSON.parse(readFileSync(join(project, "user_data/shared/prompts/resolution.json"), "utf8"));
  assert.match(JSON.stringify(resolution), /provider.g.*tones/);

  // The code of a pack is shown before it may run; after a change, the change is.
  const pack = page.locator("article").filter({ hasText: "Greeters" });
  await button("Show its code", pack).click();
  await see(pack.getByText("async def provide(context):"));
  await picture("decide");
  await button("Allow this code to run", pack).click();
  await see(pack.getByText("code: approved"));
  const code = join(project, "user_data/packs/pk/variables/g.py");
  writeFileSync(code, readFileSync(code, "utf8").replace("1", "2"));
  await open("view=decide");
  await see(pack.getByText("code: changed"));
  await button("Show what changed", pack).click();
  await see(pack.locator(".diff .new").getByText('return {"x": 2}'));
  // What changes behind the page is not approved.
  writeFileSync(code, readFileSync(code, "utf8").replace("2", "3"));
  await button("Allow this code to run", pack).click();
  await see(page.getByText("`pk` has changed since it was shown"));
  await button("Show what changed", pack).click();
  await see(pack.locator(".diff .new").getByText('return {"x": 3}'));
  await button("Allow this code to run", pack).click();
  await see(pack.getByText("code: approved"));

  // Grants of the project.
  const grant = page.locator("article").filter({ hasText: "hooks.sandbox" });
  await see(grant.getByText("new", { exact: true }));
  await button("Grant this", grant).focus();
  await page.keyboard.press("Enter");
  await see(grant.getByText("granted", { exact: true }));
  await button("Revoke", grant).click();
  await see(grant.getByText("new", { exact: true }));
}
