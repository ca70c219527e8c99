async def provide(context):
    return {"x": 7}
