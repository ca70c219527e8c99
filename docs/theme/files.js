// Says above a block which file it is. The words behind a fence become classes: `language-file PATH` or `language-LANG file PATH`.
document.querySelectorAll('pre > code').forEach((code) => {
  const words = code.className.split(' ');
  const at = words[0] === 'language-file' ? 1 : words[1] === 'file' ? 2 : 0;
  if (at === 0 || !words[at]) return;
  const name = document.createElement('div');
  name.className = 'file-name';
  name.textContent = words[at];
  code.parentElement.before(name);
});
// The headings of a page of errors say `Example` and `What to do` over and over: nothing to find one's way by.
if (/\/errors-\d\.html$/.test(location.pathname)) document.body.classList.add('errors');
