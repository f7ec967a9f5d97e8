"""amplint's fixes of real bugs beside the merged ones, as a reader compared them: see :mod:`compared.command`."""
