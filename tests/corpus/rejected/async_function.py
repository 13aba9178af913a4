"""An async function inside."""


def function(x):
    async def later():
        return x
    return later


CASE = (function, (1.0,))
